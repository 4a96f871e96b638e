-- Enter a hold once more, or leave it while entries remain: says how many entries there are from
-- now on.
-- KEYS[1] lock hash
-- ARGV[1] owner   ARGV[2] lease, ms   ARGV[3] request id of the hold   ARGV[4] entries
-- Reply: 1 done; 0 the hold is gone.
if redis.call('HGET', KEYS[1], 'sluice:request') ~= ARGV[3] then
  return 0
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[4])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
