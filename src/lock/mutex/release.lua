-- End a hold and hand the lock over; or end the wait for one.
-- KEYS[1] lock hash   KEYS[2] fencing counter   KEYS[3] queue of tickets
-- ARGV[1] request id   ARGV[2] channel   ARGV[3] most hand-overs in a row
-- ARGV[4] ticket to be taken out of the queue; empty: none
-- Reply: 1 ended; 0 there was no such hold.
local call, lock = redis.call, KEYS[1]
if ARGV[4] ~= '' then
-- include lock/mutex/look_after.lua
  if call('LREM', KEYS[3], 0, ARGV[4]) > 0 then
    hand_watch_on(KEYS[1], KEYS[3], ARGV[4])
  end
end
if call('HGET', lock, 'sluice:request') ~= ARGV[1] then
  return 0
end
if call('EXISTS', KEYS[3]) == 0 then  -- as a hand-over to nobody, without its preparations
  call('DEL', lock)
  call('PUBLISH', ARGV[2], '0')
  return 1
end
-- include lock/hold/next_token.lua
-- include lock/wait/server_time.lua
-- include lock/mutex/look_after.lua
-- include lock/mutex/hand_over.lua
hand_over(ARGV[2], tonumber(ARGV[3]))
return 1
