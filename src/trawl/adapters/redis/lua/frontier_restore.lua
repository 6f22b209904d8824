-- Bring back requests that are done, beside whoever owns the shard: one that is known stays as it is. ARGV[4]: crawl id,
-- then for each request its key, the key in decimal, origin, the reason counted, whether only the key is kept, the row
-- Answers {how many were brought back, pages charged}.
local c = crawl_of(ARGV[4]) or told(ARGV[4], 0, -1, 0)
local restored = 0
for at = 5, #ARGV, 6 do
  local key = ARGV[at]
  local forgotten = P .. 's:' .. string.byte(key, 8)
  if redis.call('HEXISTS', row_key(key), key) == 0 and redis.call('SISMEMBER', forgotten, ARGV[at + 1]) == 0 then
    local r, o = parsed(key, ARGV[at + 5]), named(ARGV[at + 2])
    o.admitted, o.changed = o.admitted + 1, true
    c.charged, c.changed = c.charged + 1, true
    redis.call('HINCRBY', P .. 'n:' .. c.number, ARGV[at + 3], 1)
    learn(r.template, 1, 1, 0)
    if ARGV[at + 4] == '1' then
      redis.call('SADD', forgotten, ARGV[at + 1])
    else
      r.seq, r.origin, r.crawl = redis.call('HINCRBY', KEYS[1], 'seq', 1), o.number, c.number
      write(r)
    end
    restored = restored + 1
  end
end
save()
return {restored, c.charged}
