-- End a hold and hand the lock over; or end the wait for one.
-- KEYS[1] lock hash   KEYS[2] queue   KEYS[3] deadlines   KEYS[4] tickets   KEYS[5] fencing counter
-- ARGV[1] request id   ARGV[2] channel   ARGV[3] owner that waits by that request; empty: none
-- Reply: 1 ended; 0 there was no such hold.
local call = redis.call
-- include lock/hold/next_token.lua
-- include lock/wait/server_time.lua
-- include lock/fair/queue.lua
-- include lock/fair/hand_over.lua
local left_queue = ARGV[3] ~= ''
  and string.match(call('HGET', KEYS[4], ARGV[3]) or '', '^%S+') == ARGV[1] and leave(ARGV[3])
if call('HGET', KEYS[1], 'sluice:request') == ARGV[1] then
  call('DEL', KEYS[1])
  hand_over(ARGV[2])
  return 1
end
if left_queue then  -- it may have been the one to look
  local left = call('PTTL', KEYS[1])
  if left == -2 then
    hand_over(ARGV[2])
  elseif left >= 0 then
    have_it_looked_at('', left, 3)  -- one of these may be in, and stand still
  end
end
return 0
