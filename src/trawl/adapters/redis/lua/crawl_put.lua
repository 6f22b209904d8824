-- A crawl's policy and scopes. KEYS: crawl (hash), scopes (list), members (set). ARGV: policy or '', replace scopes,
-- 1 and the policy ('' for none) that has to be there still, or 0 and '', then scopes as JSON. Scopes that are there
-- already are left out. Answers whether the policy is another one now; -1, and nothing is done, if it is not that one.
local known = redis.call('HGET', KEYS[1], 'policy')
if ARGV[3] == '1' and (known or '') ~= ARGV[4] then return -1 end
local is_new = ARGV[1] ~= '' and known ~= ARGV[1]
if is_new then redis.call('HSET', KEYS[1], 'policy', ARGV[1]) end
if ARGV[2] == '1' then
  redis.call('DEL', KEYS[2], KEYS[3])
  redis.call('HINCRBY', KEYS[1], 'version', 1)
end
for at = 5, #ARGV do
  if redis.call('SADD', KEYS[3], ARGV[at]) == 1 then redis.call('RPUSH', KEYS[2], ARGV[at]) end
end
return is_new and 1 or 0
