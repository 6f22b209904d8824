-- What a new owner has to know: {crawl id, pages charged} of each crawl that has requests queued or a limit here.
local found = {}
for _, number in ipairs(redis.call('SMEMBERS', P .. 'work')) do
  found[#found + 1] = {redis.call('HGET', P .. 'c:' .. number, 'id'), crawl(tonumber(number)).charged}
end
return found
