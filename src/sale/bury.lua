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
