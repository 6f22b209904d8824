-- A shard's part of a crawl's budget. KEYS: budget (hash of shard to pages). ARGV: shard, pages charged, more wanted, in all
-- Answers how many the shard may have charged.
local others = 0
local parts = redis.call('HGETALL', KEYS[1])
for at = 1, #parts, 2 do
  if parts[at] ~= ARGV[1] then others = others + tonumber(parts[at + 1]) end
end
local charged, wanted, all = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local part = math.max(charged, math.min(charged + wanted, all - others))
redis.call('HSET', KEYS[1], ARGV[1], part)
return part
