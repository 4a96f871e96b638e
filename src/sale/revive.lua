-- Send a dead letter to the workers again.
-- KEYS[1] orders stream   KEYS[2] dead letters   ARGV[1] id of the dead letter
-- Reply: 1, or 0 when there is none with that id
local found = redis.call('xrange', KEYS[2], ARGV[1], ARGV[1])
if #found == 0 then return 0 end
redis.call('xadd', KEYS[1], '*', unpack(found[1][2], 5))
redis.call('xdel', KEYS[2], ARGV[1])
return 1
