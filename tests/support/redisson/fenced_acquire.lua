-- lock_acquire with a token, which rises with every entry, the repeated ones too.
-- KEYS[1] lock hash   KEYS[2] counter   ARGV[1] lease, ms   ARGV[2] owner
-- Reply: {-1, token}: in; {ms, -1}: the hold in the way has so much left.
if redis.call('EXISTS', KEYS[1]) == 1 and redis.call('HEXISTS', KEYS[1], ARGV[2]) == 0 then
  return {redis.call('PTTL', KEYS[1]), -1}
end
redis.call('HINCRBY', KEYS[1], ARGV[2], 1)
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return {-1, redis.call('INCR', KEYS[2])}
