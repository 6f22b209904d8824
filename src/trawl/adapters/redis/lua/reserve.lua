-- Take the next slot of a host or address, or say when to ask again.
-- KEYS: state (hash), permits (sorted set by expiry). ARGV: now, interval, horizon, concurrency, permit ms, ttl ms
-- Answers {granted, at, permit or first expiry, gap or -1}.
local state, permits = KEYS[1], KEYS[2]
local now, interval, horizon = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local concurrency, permit_ms, ttl = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])

redis.call('ZREMRANGEBYSCORE', permits, '-inf', now)
local known = redis.call('HMGET', state, 'last', 'blocked')
local last, blocked = number(known[1], nil), number(known[2], 0)
local at = math.max(now, blocked)
if last then at = math.max(at, last + interval) end
if concurrency > 0 and redis.call('ZCARD', permits) >= concurrency then
  local first = redis.call('ZRANGE', permits, 0, 0, 'WITHSCORES')
  return {0, at, tonumber(first[2]), -1}
end
if at > now + horizon then return {0, at, -1, -1} end
local permit = redis.call('HINCRBY', state, 'permits', 1)
redis.call('HSET', state, 'last', string.format('%.0f', at))
redis.call('ZADD', permits, string.format('%.0f', at + permit_ms), permit)
redis.call('PEXPIRE', state, string.format('%.0f', ttl + at - now))
redis.call('PEXPIRE', permits, string.format('%.0f', ttl + at - now + permit_ms))
return {1, at, permit, last and at - last or -1}
