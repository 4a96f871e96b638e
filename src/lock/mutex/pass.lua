-- The end of a process's turn: whoever waits elsewhere gets the lock, and this process joins the
-- end of the queue; when nobody waits it keeps the lock for another turn.
-- KEYS[1] lock hash   KEYS[2] fencing counter   KEYS[3] queue of tickets
-- ARGV[1] request id of the hold   ARGV[2] channel   ARGV[3] most hand-overs in a row
-- ARGV[4] lease, ms   ARGV[5] tokens for the next turn   ARGV[6] ticket, of another request
-- ARGV[7] the last token of the turn that ends
-- Reply: an integer: kept, the last of its new tokens; 0 the hold is gone;
--        {ms, time, 0}: handed over, and in the queue; as lock/mutex/acquire.
local call = redis.call
-- include lock/hold/next_token.lua
-- include lock/wait/server_time.lua
-- include lock/mutex/look_after.lua
-- include lock/mutex/hand_over.lua
if call('HGET', KEYS[1], 'sluice:request') ~= ARGV[1] then
  return 0
end
-- A copy whose first has kept the lock does nothing: late, it would end a turn that goes on.
local last = tonumber(call('GET', KEYS[2])) or 0
if last >= ARGV[7] + ARGV[5] then
  return last
end
if call('EXISTS', KEYS[3]) == 0 then
  local passed = call('HINCRBY', KEYS[1], 'sluice:handoffs', 1)
  local others = passed >= tonumber(ARGV[3]) and call('PUBSUB', 'NUMSUB', ARGV[2])[2] or 0
  if tonumber(others) == 0 then
    call('PEXPIRE', KEYS[1], ARGV[4])
    return next_token(KEYS[2], tonumber(ARGV[5]))
  end
end
call('RPUSH', KEYS[3], ARGV[6])
call('PEXPIRE', KEYS[3], 120000)
hand_over(ARGV[2], tonumber(ARGV[3]))
return {call('PTTL', KEYS[1]), server_time(), 0}
