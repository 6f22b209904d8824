-- Grant nothing before a time; never shortens a block. KEYS: state. ARGV: until, ttl ms
local state, until_ms, ttl = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])
local blocked = number(redis.call('HGET', state, 'blocked'), 0)
if until_ms > blocked then redis.call('HSET', state, 'blocked', string.format('%.0f', until_ms)) end
local time = redis.call('TIME')
local left = math.max(0, until_ms - tonumber(time[1]) * 1000)
if redis.call('PTTL', state) < ttl + left then redis.call('PEXPIRE', state, string.format('%.0f', ttl + left)) end
return 1
