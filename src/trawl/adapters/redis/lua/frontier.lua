-- What the scripts of the frontier share: one shard's state, loaded as it is touched and saved in the end.
--
-- KEYS[1] is the shard's meta hash. ARGV[1] is the prefix of its keys, ARGV[2] the epoch of the caller's ownership (none
-- for those that only read), ARGV[3] the time. Below that prefix:
--   meta         epoch, seq, origins, crawls, queued, capped
--   y:BYTE       rows by request key, a hash for each value of the key's last byte
--   s:BYTE       keys of requests that are done and forgotten, sets of integers
--   on           origin names to numbers          o:NUMBER   an origin, with its lanes
--   cn           crawl ids to numbers             c:NUMBER   a crawl's counts      n:NUMBER  its outcomes by reason
--   work         crawls that have requests queued or a limit      act  those of which something may be leased
--   q:ORIGIN:PURSE   a lane: due requests of an origin for a purse, best first (score, then sequence)
--   w:PURSE      requests that wait for their time
--   r: k: b:PURSE    origins that may be served, that open later, that want robots.txt; by time
--   x            origins with robots.txt, by its expiry       rl   origins leased for a robots fetch
--   l            leases by their end              e            all queued, worst first; once the cap is near
--   t:BYTE       templates                        ls           sitemaps and lists by crawl and origin
-- A purse is twice a crawl's number, plus one for what its budget has paid for already. A crawl's limit is how many pages
-- it may have charged in this shard: -1 for no limit. Where the budget is shared by shards it is 0, each lease is told what
-- is granted to it, and `open` says that more may be had.

local P, now = ARGV[1], tonumber(ARGV[3])
local WAITING, DUE, LEASED, DONE = 0, 1, 2, 3
local IDLE, READY, PARKED, ROBOTS = 0, 1, 2, 3
local PLACES = {[READY] = 'r:', [PARKED] = 'k:', [ROBOTS] = 'b:'}
local HEAD = '>I1I1I1I1I4I4I4c8dI8I8I1I2I1I2'
local HEAD_BYTES = 54
local SETTLED_MAX = 250
local strict = false -- whether only what is granted may be spent
local FIELDS = {'name', 'robots', 'expires', 'next', 'blocked', 'delay', 'concurrency', 'leased', 'queued', 'admitted',
  'failures', 'served', 'rlease', 'fresh'}

if ARGV[2] ~= '' and redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[2] then
  return redis.error_reply('STALE epoch ' .. ARGV[2] .. ' of ' .. KEYS[1])
end

local function int(value) return string.format('%.0f', value) end
local function four(value) return struct.pack('>I4', value) end
local function row_key(key) return P .. 'y:' .. string.byte(key, 8) end

local function parsed(key, row)
  local r = {key = key, tail = string.sub(row, HEAD_BYTES + 1)}
  r.state, r.charge, r.purpose, r.found, r.seq, r.origin, r.crawl, r.template, r.score, r.scheduled, r.due, r.attempt,
    r.depth, r.nesting, r.visits = struct.unpack(HEAD, row)
  return r
end

local function packed(r)
  return struct.pack(HEAD, r.state, r.charge, r.purpose, r.found, r.seq, r.origin, r.crawl, r.template, r.score,
    r.scheduled, r.due, r.attempt, r.depth, r.nesting, r.visits) .. r.tail
end

local function purse_of(r) return 2 * r.crawl + (r.charge > 0 and 1 or 0) end
local function member(r) return four(r.seq) .. r.key end
local function worst(r) return four(4294967295 - r.seq) .. r.key end

-- Origins and crawls

local origins, crawls, meta = {}, {}, {}

local function loaded(number)
  local fields = redis.call('HGETALL', P .. 'o:' .. number)
  local o = {number = number, lanes = {}}
  for at = 1, #fields, 2 do
    local name, value = fields[at], fields[at + 1]
    local purse = string.match(name, '^lane(%d+)$')
    if purse then
      local due, waiting, place, moment = string.match(value, '^(%d+) (%d+) (%d+) (%d+)$')
      o.lanes[tonumber(purse)] = {
        due = tonumber(due), waiting = tonumber(waiting), place = tonumber(place), at = tonumber(moment),
      }
    elseif name == 'name' or name == 'robots' then
      o[name] = value
    else
      o[name] = tonumber(value)
    end
  end
  if o.fresh == 1 and o.expires <= now then
    o.fresh, o.changed = 0, true
    redis.call('ZREM', P .. 'x', four(number))
  end
  origins[number] = o
  return o
end

local function numbered(number) return origins[number] or loaded(number) end

local function find_origin(name)
  local number = redis.call('HGET', P .. 'on', name)
  return number and numbered(tonumber(number))
end

local function named(name)
  local known = find_origin(name)
  if known then return known end
  local number = redis.call('HINCRBY', KEYS[1], 'origins', 1)
  redis.call('HSET', P .. 'on', name, number)
  local o = {number = number, lanes = {}, name = name, robots = 'unknown', concurrency = 1}
  for _, field in ipairs(FIELDS) do
    if o[field] == nil then o[field] = 0 end
  end
  o.changed = true
  origins[number] = o
  return o
end

local function lane(o, purse)
  local known = o.lanes[purse]
  if not known then
    known = {due = 0, waiting = 0, place = IDLE, at = 0}
    o.lanes[purse] = known
  end
  return known
end

local CRAWL = {'paused', 'limit', 'open', 'charged', 'queued', 'waiting', 'leased', 'paid'}

local function has_budget(c)
  return c.limit < 0 or c.charged < (c.granted or c.limit) or (c.open == 1 and not strict)
end

-- Whether a crawl has work, and whether something of it may be leased
local function standing(c)
  local active = c.paused == 0 and (c.paid > 0 or (c.queued > c.paid and (c.open == 1 or has_budget(c))))
  return c.queued > 0 or c.limit >= 0, active
end

local function crawl(number)
  local c = crawls[number]
  if not c then
    local known = redis.call('HMGET', P .. 'c:' .. number, unpack(CRAWL))
    c = {number = number}
    for at, name in ipairs(CRAWL) do c[name] = tonumber(known[at] or (name == 'limit' and -1 or 0)) end
    c.in_work, c.in_act = standing(c)
    crawls[number] = c
  end
  return c
end

local numbers = {}

local function crawl_of(id)
  local number = numbers[id] or redis.call('HGET', P .. 'cn', id)
  if not number then return end
  numbers[id] = tonumber(number)
  return crawl(numbers[id])
end

-- A crawl by its id, made if it is new, with what its policy says
local function told(id, paused, limit, open)
  local c = crawl_of(id)
  if not c then
    local number = redis.call('HINCRBY', KEYS[1], 'crawls', 1)
    redis.call('HSET', P .. 'cn', id, number)
    redis.call('HSET', P .. 'c:' .. number, 'id', id)
    c = crawl(number)
  end
  c.paused, c.limit, c.open, c.changed = tonumber(paused), tonumber(limit), tonumber(open), true
  return c
end

local function may_spend(purse)
  local c = crawl(math.floor(purse / 2))
  return c.paused == 0 and (purse % 2 == 1 or has_budget(c))
end

local function queued_total() return meta.queued or tonumber(redis.call('HGET', KEYS[1], 'queued') or 0) end

-- Counts: as they change, so do the places of lanes, when all is saved

local function count(o, purse, state, change)
  local c, l = crawl(math.floor(purse / 2)), lane(o, purse)
  o.changed, c.changed = true, true
  if state == WAITING or state == DUE then
    local waits = state == WAITING and change or 0
    l.waiting, l.due = l.waiting + waits, l.due + change - waits
    l.changed = true
    o.queued, c.queued, c.waiting = o.queued + change, c.queued + change, c.waiting + waits
    c.paid = c.paid + change * (purse % 2)
    meta.queued = queued_total() + change
  elseif state == LEASED then
    o.leased, c.leased = o.leased + change, c.leased + change
  end
end

-- How many buckets of rows are in the order in which they have to leave; none before the cap is near
local function ordered()
  if meta.ordered == nil then meta.ordered = tonumber(redis.call('HGET', KEYS[1], 'ordered') or -1) end
  return meta.ordered
end

local function enter(r, lease_until)
  local o, purse = numbered(r.origin), purse_of(r)
  if r.state == DUE then
    redis.call('ZADD', P .. 'q:' .. r.origin .. ':' .. purse, -r.score, member(r))
  elseif r.state == WAITING then
    redis.call('ZADD', P .. 'w:' .. purse, int(r.due), member(r) .. four(r.origin))
  elseif r.state == LEASED then
    redis.call('ZADD', P .. 'l', int(lease_until), member(r))
  end
  if r.state < LEASED and ordered() >= 0 then redis.call('ZADD', P .. 'e', r.score, worst(r)) end
  count(o, purse, r.state, 1)
end

local function leave(r)
  local o, purse = numbered(r.origin), purse_of(r)
  if r.state == DUE then
    redis.call('ZREM', P .. 'q:' .. r.origin .. ':' .. purse, member(r))
  elseif r.state == WAITING then
    redis.call('ZREM', P .. 'w:' .. purse, member(r) .. four(r.origin))
  elseif r.state == LEASED then
    redis.call('ZREM', P .. 'l', member(r))
  end
  if r.state < LEASED and ordered() >= 0 then redis.call('ZREM', P .. 'e', worst(r)) end
  count(o, purse, r.state, -1)
end

local function read(key)
  local row = redis.call('HGET', row_key(key), key)
  return row and parsed(key, row)
end

local function write(r) redis.call('HSET', row_key(r.key), r.key, packed(r)) end

local function learn(template, admitted, results, duplicates)
  local key, counts = P .. 't:' .. string.byte(template, 8), {0, 0, 0}
  local known = redis.call('HGET', key, template)
  if known then counts = {struct.unpack('>I4I4I4', known)} end
  redis.call('HSET', key, template,
    struct.pack('>I4I4I4', counts[1] + admitted, counts[2] + results, counts[3] + duplicates))
end

local function queued_state(due) return due <= now and DUE or WAITING end

-- Places

local function place(o, l)
  if l.due == 0 and l.waiting == 0 then return IDLE, 0 end
  if o.fresh == 0 then return ROBOTS, math.max(o.blocked, o.expires, o.rlease) end
  if l.due == 0 or o.leased >= o.concurrency then return IDLE, 0 end
  local opens = math.max(o.next, o.blocked)
  if opens <= now then return READY, o.served end
  return PARKED, opens
end

local function save_origin(o)
  local key = P .. 'o:' .. o.number
  for purse, l in pairs(o.lanes) do
    local where, at = place(o, l)
    if where ~= l.place or at ~= l.at then
      if l.place ~= IDLE then redis.call('ZREM', P .. PLACES[l.place] .. purse, four(o.number)) end
      if where ~= IDLE then redis.call('ZADD', P .. PLACES[where] .. purse, int(at), four(o.number)) end
      l.place, l.at, l.changed = where, at, true
    end
    if l.changed then
      if l.due == 0 and l.waiting == 0 then
        redis.call('HDEL', key, 'lane' .. purse)
      else
        redis.call('HSET', key, 'lane' .. purse, l.due .. ' ' .. l.waiting .. ' ' .. l.place .. ' ' .. int(l.at))
      end
      l.changed = false
    end
  end
  if not o.changed then return end
  o.changed = false
  redis.call('HSET', key, 'name', o.name, 'robots', o.robots, 'expires', int(o.expires), 'next', int(o.next),
    'blocked', int(o.blocked), 'delay', int(o.delay), 'concurrency', int(o.concurrency), 'leased', o.leased,
    'queued', o.queued, 'admitted', o.admitted, 'failures', o.failures, 'served', int(o.served),
    'rlease', int(o.rlease), 'fresh', o.fresh)
end

local function save()
  for _, o in pairs(origins) do save_origin(o) end
  for number, c in pairs(crawls) do
    if c.changed then
      local key, work, active = P .. 'c:' .. number, standing(c)
      redis.call('HSET', key, 'paused', c.paused, 'limit', c.limit, 'open', c.open, 'charged', c.charged, 'queued',
        c.queued, 'waiting', c.waiting, 'leased', c.leased, 'paid', c.paid)
      if work ~= c.in_work then redis.call(work and 'SADD' or 'SREM', P .. 'work', number) end
      if active ~= c.in_act then redis.call(active and 'SADD' or 'SREM', P .. 'act', number) end
      c.in_work, c.in_act, c.changed = work, active, false
    end
  end
  if meta.queued then redis.call('HSET', KEYS[1], 'queued', meta.queued) end
end

-- Put into place what time alone has moved, so much at a time; the purses that may be spent
local function settle()
  for _, packed_number in ipairs(redis.call('ZRANGEBYSCORE', P .. 'x', '-inf', int(now), 'LIMIT', 0, SETTLED_MAX)) do
    numbered(struct.unpack('>I4', packed_number))
  end
  local purses = {}
  for _, number in ipairs(redis.call('SMEMBERS', P .. 'act')) do
    for purse = 2 * number, 2 * number + 1 do
      if may_spend(purse) then purses[#purses + 1] = purse end
    end
  end
  table.sort(purses)
  for _, purse in ipairs(purses) do
    local due = redis.call('ZRANGEBYSCORE', P .. 'w:' .. purse, '-inf', int(now), 'LIMIT', 0, SETTLED_MAX)
    for _, entry in ipairs(due) do
      local r = read(string.sub(entry, 5, 12))
      leave(r)
      r.state = DUE
      enter(r)
      write(r)
    end
    local parked = redis.call('ZRANGEBYSCORE', P .. 'k:' .. purse, '-inf', int(now), 'LIMIT', 0, SETTLED_MAX)
    for _, packed_number in ipairs(parked) do numbered(struct.unpack('>I4', packed_number)) end
  end
  save()
  return purses
end

-- Origins with a lane in a place: {time, number}, first come first, without repeats
local function turns(purses, where, limit)
  local found, seen = {}, {}
  for _, purse in ipairs(purses) do
    local first = redis.call('ZRANGE', P .. PLACES[where] .. purse, 0, limit - 1, 'WITHSCORES')
    for at = 1, #first, 2 do
      local number, moment = struct.unpack('>I4', first[at]), tonumber(first[at + 1])
      local id = number .. ':' .. int(moment)
      if not seen[id] then
        seen[id] = true
        found[#found + 1] = {moment, number}
      end
    end
  end
  table.sort(found, function(a, b) return a[1] < b[1] or (a[1] == b[1] and a[2] < b[2]) end)
  while #found > limit do found[#found] = nil end
  return found
end

