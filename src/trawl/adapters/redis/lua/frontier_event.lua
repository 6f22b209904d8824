-- When a lease and when a robots fetch could become possible, when the first lease ends, and when the first robots.txt
-- expires, which may bring an event nearer; each -1 for never. Then of each crawl with a limit of which something may be
-- leased {id, pages charged, requests queued that are not paid for}.
local function first(key)
  local found = redis.call('ZRANGE', P .. key, 0, 0, 'WITHSCORES')
  return found[2] and tonumber(found[2])
end

local function earlier(a, b)
  if a and b then return math.min(a, b) end
  return a or b
end

local lease, robots
for _, purse in ipairs(settle()) do
  if #turns({purse}, READY, 1) > 0 then lease = now end
  lease = earlier(lease, earlier(first('k:' .. purse), first('w:' .. purse)))
  robots = earlier(robots, first('b:' .. purse))
end
local function told_time(at) return at and int(at) or '-1' end
local answer = {told_time(lease), told_time(robots), told_time(first('l')), told_time(first('x'))}
for _, number in ipairs(redis.call('SMEMBERS', P .. 'act')) do
  local c = crawl(tonumber(number))
  if c.limit >= 0 then
    answer[#answer + 1] = {redis.call('HGET', P .. 'c:' .. number, 'id'), c.charged, c.queued - c.paid}
  end
end
return answer
