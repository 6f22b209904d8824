-- When a lease or a robots fetch could become possible, and when the first lease ends: {event or -1, lease or -1}.
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
return {event and int(math.max(event, now)) or '-1', lease[2] or '-1'}
