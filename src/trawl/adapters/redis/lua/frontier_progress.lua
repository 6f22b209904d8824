-- How far a crawl is in this shard. ARGV[4]: its id. Answers nothing if it has never been here, else {queued, waiting,
-- leased, charged, when the first waiting request is due or -1, then its outcomes by reason and their counts}.
local c = crawl_of(ARGV[4])
if not c then return {} end
local due = '-1'
for purse = 2 * c.number, 2 * c.number + 1 do
  local first = redis.call('ZRANGE', P .. 'w:' .. purse, 0, 0, 'WITHSCORES')
  if first[2] and (due == '-1' or tonumber(first[2]) < tonumber(due)) then due = int(tonumber(first[2])) end
end
local answer = {c.queued, c.waiting, c.leased, c.charged, due}
for _, word in ipairs(redis.call('HGETALL', P .. 'n:' .. c.number)) do answer[#answer + 1] = word end
return answer
