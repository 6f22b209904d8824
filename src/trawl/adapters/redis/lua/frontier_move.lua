-- End leases, dismiss or readmit: rows as they were become rows as they are to be. ARGV[4..]: for each request
-- its key, the row before, the row after, the reason counted before and after, template result ('' none, 0, 1),
-- the key in decimal if the row is forgotten. Answers for each whether the row was still as it was.
local answers = {}
for at = 4, #ARGV, 7 do
  local key = ARGV[at]
  if redis.call('HGET', row_key(key), key) ~= ARGV[at + 1] then
    answers[#answers + 1] = 0
  else
    local before, after = parsed(key, ARGV[at + 1]), parsed(key, ARGV[at + 2])
    leave(before)
    local change = (after.charge > 0 and 1 or 0) - (before.charge > 0 and 1 or 0)
    if change ~= 0 then
      local c = crawl(before.crawl)
      c.charged, c.changed = c.charged + change, true
    end
    if after.state < LEASED then after.state = queued_state(after.due) end
    enter(after)
    if ARGV[at + 3] ~= ARGV[at + 4] then
      local counts = P .. 'n:' .. before.crawl
      if ARGV[at + 3] ~= '' then redis.call('HINCRBY', counts, ARGV[at + 3], -1) end
      if ARGV[at + 4] ~= '' then redis.call('HINCRBY', counts, ARGV[at + 4], 1) end
    end
    if ARGV[at + 5] ~= '' then
      learn(after.template, 0, 1, tonumber(ARGV[at + 5]))
    end
    if ARGV[at + 6] ~= '' then
      redis.call('HDEL', row_key(key), key)
      redis.call('SADD', P .. 's:' .. string.byte(key, 8), ARGV[at + 6])
    else
      write(after)
    end
    answers[#answers + 1] = 1
  end
end
save()
return answers
