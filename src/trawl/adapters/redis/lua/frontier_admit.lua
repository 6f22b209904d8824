-- Queue requests that were never seen. ARGV[4..]: queue cap, cap by origin, cap of lists, then for each request
-- its key, the key in decimal, crawl id, origin, paused, limit, is a list, row
-- Answers for each {1 admitted, 0 seen, -1 host_budget, -2 sitemap_budget, -3 queue_full, the row evicted, its origin}.
local cap, host_max, lists_max = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])

local function crawl_number(id, paused, limit)
  local number = redis.call('HGET', P .. 'cn', id)
  if number then return tonumber(number) end
  number = redis.call('HINCRBY', KEYS[1], 'crawls', 1)
  redis.call('HSET', P .. 'cn', id, number)
  redis.call('HSET', P .. 'c:' .. number, 'id', id, 'paused', paused, 'limit', limit)
  return number
end

-- From the first time that the cap is met on, all that is queued is kept in the order in which it has to leave
local function keep_order()
  if is_capped() then return end
  for byte = 0, 255 do
    local rows = redis.call('HGETALL', P .. 'y:' .. byte)
    for at = 1, #rows, 2 do
      local r = parsed(rows[at], rows[at + 1])
      if r.state < LEASED then redis.call('ZADD', P .. 'e', r.score, worst(r)) end
    end
  end
  redis.call('HSET', KEYS[1], 'capped', 1)
  meta.capped = true
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

local answers = {}
for at = 7, #ARGV, 8 do
  local key, decimal, crawl_id, origin, is_list = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], ARGV[at + 6] == '1'
  local r = parsed(key, ARGV[at + 7])
  local code, evicted, evicted_origin = 1, '', ''
  if redis.call('HEXISTS', row_key(key), key) == 1
    or redis.call('SISMEMBER', P .. 's:' .. string.byte(key, 8), decimal) == 1 then
    code = 0
  else
    local o = named(origin)
    local number = crawl_number(crawl_id, ARGV[at + 4], ARGV[at + 5])
    local lists = number .. ':' .. o.number
    if o.admitted >= host_max then
      code = -1
    elseif is_list and tonumber(redis.call('HGET', P .. 'ls', lists) or 0) >= lists_max then
      code = -2
    else
      if queued_total() >= cap then
        keep_order()
        local lowest = redis.call('ZRANGE', P .. 'e', 0, 0, 'WITHSCORES')
        if #lowest == 0 or tonumber(lowest[2]) >= r.score then
          code = -3
        else
          local gone = read(string.sub(lowest[1], 5, 12))
          evicted, evicted_origin = packed(gone), numbered(gone.origin).name
          evict(gone)
        end
      end
      if code == 1 then
        r.seq, r.origin, r.crawl = redis.call('HINCRBY', KEYS[1], 'seq', 1), o.number, number
        r.state = queued_state(r.due)
        enter(r)
        write(r)
        o.admitted = o.admitted + 1
        if is_list then redis.call('HINCRBY', P .. 'ls', lists, 1) end
        local templates = P .. 't:' .. string.byte(r.template, 8)
        local known = redis.call('HGET', templates, r.template)
        local admitted, results, duplicates = 0, 0, 0
        if known then admitted, results, duplicates = struct.unpack('>I4I4I4', known) end
        redis.call('HSET', templates, r.template, struct.pack('>I4I4I4', admitted + 1, results, duplicates))
      end
    end
  end
  answers[#answers + 1] = {code, evicted, evicted_origin}
end
save()
return answers
