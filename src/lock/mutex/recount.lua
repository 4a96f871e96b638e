-- Enter a hold once more, or leave it while entries remain: says how many entries there are from
-- now on.
-- KEYS[1] lock hash
-- ARGV[1] request id of the hold   ARGV[2] lease, ms   ARGV[3] owner   ARGV[4] entries
-- ARGV[5] holder, for people   ARGV[6] how long it has been in, ms
-- Reply: 1 done; 0 the hold is gone.
-- include lock/wait/server_time.lua
-- include lock/mutex/own.lua
if redis.call('HGET', KEYS[1], 'sluice:request') ~= ARGV[1] then
  return 0
end
own(KEYS[1], ARGV[3], ARGV[4], ARGV[5], ARGV[6])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
