-- Lease due requests. ARGV[4..]: limit, lease ms, most origins, then of each crawl with a shared budget its id and how many
-- pages it may have charged here. Answers {key, row, origin, crawl id} for each, and the pages charged by these crawls.
local limit, lease_ms, origins_max = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
strict = true
local granted = {}
for at = 7, #ARGV, 2 do
  local c = crawl_of(ARGV[at])
  if c then c.granted = tonumber(ARGV[at + 1]) end
  granted[#granted + 1] = c or {charged = 0}
end

local function may_serve(o)
  return o.next <= now and o.blocked <= now and o.fresh == 1 and o.leased < o.concurrency
end

local leased = {}

local function serve(o)
  local best
  for purse, l in pairs(o.lanes) do
    if l.due > 0 and may_spend(purse) then
      local head = redis.call('ZRANGE', P .. 'q:' .. o.number .. ':' .. purse, 0, 0, 'WITHSCORES')
      if #head > 0 then
        local score = tonumber(head[2])
        if not best or score < best[1] or (score == best[1] and head[1] < best[2]) then best = {score, head[1]} end
      end
    end
  end
  if not best then return false end
  local r = read(string.sub(best[2], 5, 12))
  leave(r)
  -- purposes 0 and 5, page and auto, count against the budget, unless an earlier visit did
  if r.charge == 0 and (r.purpose == 0 or r.purpose == 5) then
    local c = crawl(r.crawl)
    r.charge, c.charged, c.changed = 1, c.charged + 1, true
  end
  r.state = LEASED
  enter(r, now + lease_ms)
  write(r)
  o.served, o.next, o.changed = now, now + o.delay, true
  leased[#leased + 1] = {r.key, packed(r), o.name, redis.call('HGET', P .. 'c:' .. r.crawl, 'id')}
  return true
end

local waiting = {}
for _, turn in ipairs(turns(settle(), READY, math.max(0, math.min(limit, origins_max)))) do
  waiting[#waiting + 1] = numbered(turn[2])
end
while #waiting > 0 and #leased < limit do
  local again = {}
  for _, o in ipairs(waiting) do
    if #leased < limit and serve(o) and may_serve(o) then again[#again + 1] = o end
  end
  waiting = again
end
save()
local charged = {}
for at, c in ipairs(granted) do charged[at] = c.charged end
return {leased, charged}
