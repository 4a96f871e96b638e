-- KEYS[1] settings   ARGV[1] rate   ARGV[2] interval, ms   ARGV[3] type: 0 overall, 1 a client
-- Reply: 1 set; 0 they were there.
local set = redis.call('HSETNX', KEYS[1], 'rate', ARGV[1])
redis.call('HSETNX', KEYS[1], 'interval', ARGV[2])
redis.call('HSETNX', KEYS[1], 'keepAliveTime', 0)
redis.call('HSETNX', KEYS[1], 'type', ARGV[3])
return set
