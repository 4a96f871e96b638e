-- Forget entries that are safe in the database.
-- KEYS[1] orders stream   ARGV[1] consumer group   ARGV[2..] entry ids
-- Reply: how many were still pending
local acknowledged = redis.call('xack', KEYS[1], ARGV[1], unpack(ARGV, 2))
redis.call('xdel', KEYS[1], unpack(ARGV, 2))
return acknowledged
