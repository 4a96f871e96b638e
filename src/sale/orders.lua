-- script acknowledge
-- Forget entries that are safe in the database.
-- KEYS[1] orders stream   ARGV[1] consumer group   ARGV[2..] entry ids
-- Reply: how many were still pending
local acknowledged = redis.call('xack', KEYS[1], ARGV[1], unpack(ARGV, 2))
redis.call('xdel', KEYS[1], unpack(ARGV, 2))
return acknowledged

-- script bury
-- Move one entry to the dead letters, with all its fields.
-- KEYS[1] orders stream   KEYS[2] dead letters
-- ARGV[1] consumer group   ARGV[2] entry id   ARGV[3] reason
-- Reply: 1, or 0 when another worker has dealt with it
if redis.call('xack', KEYS[1], ARGV[1], ARGV[2]) == 0 then return 0 end
local found = redis.call('xrange', KEYS[1], ARGV[2], ARGV[2])
if #found == 0 then return 0 end
redis.call('xadd', KEYS[2], '*', 'reason', ARGV[3], 'entry', ARGV[2], unpack(found[1][2]))
redis.call('xdel', KEYS[1], ARGV[2])
return 1

-- script leave
-- Remove a consumer that stops from the group, unless entries are pending for it: the worker that
-- claims them must still see them.
-- KEYS[1] orders stream   ARGV[1] consumer group   ARGV[2] consumer
-- Reply: 1 when it is gone
if #redis.call('xpending', KEYS[1], ARGV[1], '-', '+', 1, ARGV[2]) > 0 then return 0 end
redis.call('xgroup', 'delconsumer', KEYS[1], ARGV[1], ARGV[2])
return 1

-- script revive
-- Send a dead letter to the workers again.
-- KEYS[1] orders stream   KEYS[2] dead letters   ARGV[1] id of the dead letter
-- Reply: 1, or 0 when there is none with that id
local found = redis.call('xrange', KEYS[2], ARGV[1], ARGV[1])
if #found == 0 then return 0 end
redis.call('xadd', KEYS[1], '*', unpack(found[1][2], 5))
redis.call('xdel', KEYS[2], ARGV[1])
return 1
