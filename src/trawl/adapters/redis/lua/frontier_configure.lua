-- What a crawl may spend in this shard. ARGV[4..]: for each crawl its id, whether it is paused, its limit (-1 none)
-- Answers for each {pages charged, requests queued}, or nothing of a crawl that has never been here.
local answers = {}
for at = 4, #ARGV, 3 do
  local number = redis.call('HGET', P .. 'cn', ARGV[at])
  if number then
    redis.call('HSET', P .. 'c:' .. number, 'paused', ARGV[at + 1], 'limit', ARGV[at + 2])
    local c = redis.call('HMGET', P .. 'c:' .. number, 'charged', 'queued')
    answers[#answers + 1] = {tonumber(c[1] or 0), tonumber(c[2] or 0)}
  else
    answers[#answers + 1] = {0, 0}
  end
end
return answers
