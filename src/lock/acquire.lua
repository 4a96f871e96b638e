-- Take a free lock. An owner that has it already is refused like anybody else: re-entry is lock/recount.
-- KEYS[1] lock hash   KEYS[2] fencing counter
-- ARGV[1] owner   ARGV[2] lease, ms   ARGV[3] request id
-- Reply: {1, token} held by this request (now, or since an earlier copy of it); {0, ms} another's hold has so much left,
--        -1: it has no end.
if redis.call('EXISTS', KEYS[1]) == 0 then
  local token = redis.call('INCR', KEYS[2])
  redis.call('HSET', KEYS[1], ARGV[1], 1, 'sluice:request', ARGV[3])
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return {1, token}
end
if redis.call('HGET', KEYS[1], 'sluice:request') == ARGV[3] then
  return {1, tonumber(redis.call('GET', KEYS[2]))}  -- nobody has counted on since: this hold is in the way
end
return {0, redis.call('PTTL', KEYS[1])}
