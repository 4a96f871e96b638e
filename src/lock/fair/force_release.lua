-- End whatever hold there is, without asking its owner, and hand the lock over.
-- KEYS[1] lock hash   KEYS[2] queue   KEYS[3] deadlines   KEYS[4] tickets   KEYS[5] fencing counter
-- ARGV[1] channel
-- Reply: 1 ended; 0 nobody held it.
-- include lock/hold/next_token.lua
-- include lock/wait/server_time.lua
-- include lock/fair/queue.lua
-- include lock/fair/hand_over.lua
local ended = redis.call('DEL', KEYS[1])
hand_over(ARGV[1])
return ended
