-- Become the owner of a shard: whoever was it can change nothing from now on. KEYS: meta. Answers the new epoch.
return redis.call('HINCRBY', KEYS[1], 'epoch', 1)
