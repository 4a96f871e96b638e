-- Take a free lock, or wait for it in the queue. An owner that has it already is refused like
-- anybody else: re-entry is lock/mutex/recount.
-- KEYS[1] lock hash   KEYS[2] fencing counter   KEYS[3] queue of tickets
-- ARGV[1] owner   ARGV[2] lease, ms   ARGV[3] request id   ARGV[4] holder, for people
-- ARGV[5] ticket (see lock/mutex/hand_over); empty: do not wait
-- Reply: an integer, the token: held by this request, now or since an earlier copy of it or a
--        hand-over;
--        {ms, time, foreign}: refused. The hold in the way has so much of its lease left (-1: it
--        has no end); the server's time in ms, 0 where we do not wait; 1: the holder knows no queue.
local call, lock = redis.call, KEYS[1]
-- include lock/hold/next_token.lua
if call('EXISTS', lock) == 0 then
  local token = next_token(KEYS[2], 1)
  call('HSET', lock, ARGV[1], 1, 'sluice:request', ARGV[3], 'sluice:holder', ARGV[4])
  call('PEXPIRE', lock, ARGV[2])
  if ARGV[5] ~= '' then
    call('LREM', KEYS[3], 1, ARGV[5])
  end
  return token
end
local request = call('HGET', lock, 'sluice:request')
if request == ARGV[3] then
  call('PEXPIRE', lock, ARGV[2])
  return tonumber(call('GET', KEYS[2]))  -- nobody has counted on since: this hold is in the way
end
-- include lock/wait/server_time.lua
-- include lock/mutex/has_looked.lua
local time = 0
if ARGV[5] ~= '' then
  if not call('LPOS', KEYS[3], ARGV[5]) then
    call('RPUSH', KEYS[3], ARGV[5])
  end
  call('PEXPIRE', KEYS[3], 120000)  -- whoever waits looks again within 30 s
  time = server_time()
  has_looked(lock, ARGV[3])
end
return {call('PTTL', lock), time, request and 0 or 1}
