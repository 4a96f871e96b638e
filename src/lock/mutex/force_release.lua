-- End whatever hold there is, without asking its owner, and hand the lock over.
-- KEYS[1] lock hash   KEYS[2] fencing counter   KEYS[3] queue of tickets
-- ARGV[1] channel   ARGV[2] most hand-overs in a row
-- Reply: 1 ended; 0 nobody held it.
-- include lock/hold/next_token.lua
-- include lock/wait/server_time.lua
-- include lock/mutex/look_after.lua
-- include lock/mutex/hand_over.lua
if redis.call('EXISTS', KEYS[1]) == 0 then
  return 0
end
hand_over(ARGV[1], tonumber(ARGV[2]))
return 1
