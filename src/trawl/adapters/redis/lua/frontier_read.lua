-- One row: {row, the name of its origin, its crawl id}, or nothing. KEYS: its bucket. ARGV: the shard's prefix, the key.
local row = redis.call('HGET', KEYS[1], ARGV[2])
if not row then return {} end
local origin, crawl = struct.unpack('>I4I4', row, 9)
return {row, redis.call('HGET', ARGV[1] .. 'o:' .. origin, 'name'), redis.call('HGET', ARGV[1] .. 'c:' .. crawl, 'id')}
