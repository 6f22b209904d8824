-- Return leases to the queue. ARGV[4..]: those that end until then ('+inf' for all), attempts more, limit
-- Answers when the next one ends (-1 for never), and {key, row, origin, crawl id} for each, in the order of their ends.
local more = tonumber(ARGV[5])
local expired = redis.call('ZRANGEBYSCORE', P .. 'l', '-inf', ARGV[4], 'LIMIT', 0, ARGV[6])
local reaped = {}
for _, entry in ipairs(expired) do
  local r = read(string.sub(entry, 5, 12))
  leave(r)
  r.attempt = math.min(255, r.attempt + more)
  r.state = queued_state(r.due)
  enter(r)
  write(r)
  reaped[#reaped + 1] = {r.key, packed(r), numbered(r.origin).name, redis.call('HGET', P .. 'c:' .. r.crawl, 'id')}
end
if ARGV[4] == '+inf' then
  for _, number in ipairs(redis.call('SMEMBERS', P .. 'rl')) do
    local o = numbered(tonumber(number))
    o.rlease, o.changed = 0, true
  end
  redis.call('DEL', P .. 'rl')
end
save()
local first = redis.call('ZRANGE', P .. 'l', 0, 0, 'WITHSCORES')
return {first[2] or '-1', reaped}
