-- When a lease or a robots fetch could become possible, when the first lease ends, and when the first robots.txt
-- expires, which may bring an event nearer: {event, lease, expiry}, each -1 for never.
local event
for _, purse in ipairs(settle()) do
  if #turns({purse}, READY, 1) > 0 then
    event = now
    break
  end
  for _, kind in ipairs({'k:', 'b:', 'w:'}) do
    local first = redis.call('ZRANGE', P .. kind .. purse, 0, 0, 'WITHSCORES')
    if #first > 0 then
      local at = tonumber(first[2])
      if not event or at < event then event = at end
    end
  end
end
local lease = redis.call('ZRANGE', P .. 'l', 0, 0, 'WITHSCORES')
local expiry = redis.call('ZRANGE', P .. 'x', 0, 0, 'WITHSCORES')
return {event and int(math.max(event, now)) or '-1', lease[2] or '-1', expiry[2] or '-1'}
