-- Take a free lock, or enter once more what the owner has.
-- KEYS[1] lock hash   ARGV[1] lease, ms   ARGV[2] owner
-- Reply: nil: in; else the milliseconds that the hold in the way has left.
if redis.call('EXISTS', KEYS[1]) == 1 and redis.call('HEXISTS', KEYS[1], ARGV[2]) == 0 then
  return redis.call('PTTL', KEYS[1])
end
redis.call('HINCRBY', KEYS[1], ARGV[2], 1)
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return nil
