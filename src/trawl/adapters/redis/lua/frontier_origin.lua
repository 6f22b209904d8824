-- Set fields of an origin. ARGV[4..]: its name, robots, expiry, blocked until, delay, concurrency, failures ('' leaves a
-- field), whether a block is lifted. Answers the fields of the origin.
local o = named(ARGV[4])
local function told(at, name)
  if ARGV[at] ~= '' then o[name] = tonumber(ARGV[at]) end
end
if ARGV[11] == '1' then
  o.blocked = tonumber(ARGV[7] ~= '' and ARGV[7] or 0)
elseif ARGV[7] ~= '' then
  o.blocked = math.max(o.blocked, tonumber(ARGV[7]))
end
if ARGV[5] ~= '' then
  o.robots, o.rlease = ARGV[5], 0
  redis.call('SREM', P .. 'rl', o.number)
end
told(6, 'expires')
told(8, 'delay')
told(9, 'concurrency')
told(10, 'failures')
if o.served > 0 then o.next = o.served + o.delay end
o.fresh = (o.robots ~= 'unknown' and o.expires > now) and 1 or 0
if o.fresh == 1 then
  redis.call('ZADD', P .. 'x', int(o.expires), four(o.number))
else
  redis.call('ZREM', P .. 'x', four(o.number))
end
o.changed = true
save()
return redis.call('HGETALL', P .. 'o:' .. o.number)
