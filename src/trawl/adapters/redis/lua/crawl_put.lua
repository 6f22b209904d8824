-- A crawl's policy and scopes. KEYS: crawl (hash), scopes (list), members (set). ARGV: policy or '', replace scopes,
-- then scopes as JSON. Scopes that are there already are left out. Answers whether the policy is another one now.
local is_new = ARGV[1] ~= '' and redis.call('HGET', KEYS[1], 'policy') ~= ARGV[1]
if is_new then redis.call('HSET', KEYS[1], 'policy', ARGV[1]) end
if ARGV[2] == '1' then
  redis.call('DEL', KEYS[2], KEYS[3])
  redis.call('HINCRBY', KEYS[1], 'version', 1)
end
for at = 3, #ARGV do
  if redis.call('SADD', KEYS[3], ARGV[at]) == 1 then redis.call('RPUSH', KEYS[2], ARGV[at]) end
end
return is_new and 1 or 0
