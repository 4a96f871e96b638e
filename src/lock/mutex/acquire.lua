-- Take a free lock. An owner that has it already is refused like anybody else: re-entry is
-- lock/recount.
-- KEYS[1] lock hash   KEYS[2] fencing counter
-- ARGV[1] owner   ARGV[2] lease, ms   ARGV[3] request id
-- Reply: an integer, the token: held by this request, now or since an earlier copy of it;
--        {ms}: refused, the hold in the way has so much of its lease left; -1: it has no end.
local call = redis.call
if call('EXISTS', KEYS[1]) == 0 then
  local token = call('INCR', KEYS[2])
  call('HSET', KEYS[1], ARGV[1], 1, 'sluice:request', ARGV[3])
  call('PEXPIRE', KEYS[1], ARGV[2])
  return token
end
if call('HGET', KEYS[1], 'sluice:request') == ARGV[3] then
  return tonumber(call('GET', KEYS[2]))  -- nobody has counted on since: this hold is in the way
end
return {call('PTTL', KEYS[1])}
