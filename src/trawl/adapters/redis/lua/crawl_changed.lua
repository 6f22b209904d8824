-- Tell all replicas that a crawl's policy is another one, or that pages of its budget are left again. KEYS: serial, changes.
local serial = redis.call('INCR', KEYS[1])
redis.call('ZADD', KEYS[2], serial, ARGV[1])
return serial
