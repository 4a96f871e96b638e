-- KEYS[1] free permits   KEYS[2] channel   ARGV[1] permits
-- Reply: the free permits.
local free = redis.call('INCRBY', KEYS[1], ARGV[1])
redis.call('PUBLISH', KEYS[2], free)
return free
