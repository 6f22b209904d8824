-- Queue requests that were never seen. ARGV[4..]: queue cap, cap by origin, cap of lists, how many crawls are told of,
-- for each its id, paused, limit and open, then for each request its key, the key in decimal, crawl id, origin, is a list, row
-- Answers for each {1 admitted, 0 seen, -1 host_budget, -2 sitemap_budget, -3 queue_full, the row evicted, its origin, its
-- crawl id}.
local cap, host_max, lists_max = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local BUCKETS = 256

-- Over the last quarter below the cap, all that is queued is brought into the order in which it has to leave, so many
-- buckets of rows at a time that it is done when the cap is met
local function keep_order()
  local total = queued_total()
  local wanted = total >= cap and BUCKETS or math.ceil(BUCKETS * (4 * total / cap - 3))
  if wanted <= ordered() or wanted <= 0 then return end
  for byte = math.max(0, ordered()), wanted - 1 do
    local rows = redis.call('HGETALL', P .. 'y:' .. byte)
    for at = 1, #rows, 2 do
      local r = parsed(rows[at], rows[at + 1])
      if r.state < LEASED then redis.call('ZADD', P .. 'e', r.score, worst(r)) end
    end
  end
  redis.call('HSET', KEYS[1], 'ordered', wanted)
  meta.ordered = wanted
end

local function evict(r)
  leave(r)
  if r.visits > 0 then
    r.state = DONE
    enter(r)
    write(r)
    return
  end
  if r.charge > 0 then
    local c = crawl(r.crawl)
    c.charged, c.changed = c.charged - 1, true
  end
  redis.call('HDEL', row_key(r.key), r.key)
end

local first = 8 + 4 * tonumber(ARGV[7])
for at = 8, first - 1, 4 do told(ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]) end

for at = first, #ARGV, 6 do
  if not crawl_of(ARGV[at + 2]) then
    return redis.error_reply('STALE ' .. KEYS[1] .. ' has lost the crawl ' .. ARGV[at + 2])
  end
end

local function admit(key, crawl_id, origin, is_list, row)
  local r, o, c = parsed(key, row), named(origin), crawl_of(crawl_id)
  local lists = c.number .. ':' .. o.number
  if o.admitted >= host_max then return {-1, '', '', ''} end
  if is_list and tonumber(redis.call('HGET', P .. 'ls', lists) or 0) >= lists_max then return {-2, '', '', ''} end
  local answer = {1, '', '', ''}
  keep_order()
  if queued_total() >= cap then
    local lowest = redis.call('ZRANGE', P .. 'e', 0, 0, 'WITHSCORES')
    if #lowest == 0 or tonumber(lowest[2]) >= r.score then return {-3, '', '', ''} end
    local gone = read(string.sub(lowest[1], 5, 12))
    answer = {1, packed(gone), numbered(gone.origin).name, redis.call('HGET', P .. 'c:' .. gone.crawl, 'id')}
    evict(gone)
  end
  r.seq, r.origin, r.crawl = redis.call('HINCRBY', KEYS[1], 'seq', 1), o.number, c.number
  r.state = queued_state(r.due)
  enter(r)
  write(r)
  o.admitted = o.admitted + 1
  if is_list then redis.call('HINCRBY', P .. 'ls', lists, 1) end
  learn(r.template, 1, 0, 0)
  return answer
end

local answers = {}
for at = first, #ARGV, 6 do
  local key = ARGV[at]
  if redis.call('HEXISTS', row_key(key), key) == 1
    or redis.call('SISMEMBER', P .. 's:' .. string.byte(key, 8), ARGV[at + 1]) == 1 then
    answers[#answers + 1] = {0, '', '', ''}
  else
    answers[#answers + 1] = admit(key, ARGV[at + 2], ARGV[at + 3], ARGV[at + 4] == '1', ARGV[at + 5])
  end
end
save()
return answers
