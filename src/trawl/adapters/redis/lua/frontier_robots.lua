-- Lease origins for a robots fetch. ARGV[4..]: limit, lease ms. Answers their names.
local limit, lease_ms = tonumber(ARGV[4]), tonumber(ARGV[5])
local names = {}
for _, turn in ipairs(turns(settle(), ROBOTS, limit)) do
  if turn[1] <= now then
    local o = numbered(turn[2])
    o.rlease, o.changed = now + lease_ms, true
    redis.call('SADD', P .. 'rl', o.number)
    names[#names + 1] = o.name
  end
end
save()
return names
