-- Parts of a crawl's budget. KEYS: budget (hash of shard to pages). ARGV: pages in all, then for each shard its number, the
-- pages charged there, how many more it wants. What is left goes to the shards in even parts.
-- Answers {pages left before, pages left after, then how many each shard may have charged}.
local all, parts, used = tonumber(ARGV[1]), redis.call('HGETALL', KEYS[1]), 0
local known = {}
for at = 1, #parts, 2 do
  known[parts[at]] = tonumber(parts[at + 1])
  used = used + known[parts[at]]
end
local before, wanting = math.max(0, all - used), 0
for at = 2, #ARGV, 3 do
  used = used - (known[ARGV[at]] or 0) + tonumber(ARGV[at + 1])
  if tonumber(ARGV[at + 2]) > 0 then wanting = wanting + 1 end
end
local left = math.max(0, all - used)
local answer = {before, 0}
for at = 2, #ARGV, 3 do
  local charged, wanted = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  local more = 0
  if wanted > 0 then
    more = math.min(wanted, math.ceil(left / wanting))
    left, wanting = left - more, wanting - 1
  end
  redis.call('HSET', KEYS[1], ARGV[at], charged + more)
  answer[#answer + 1] = charged + more
end
answer[2] = left
return answer
