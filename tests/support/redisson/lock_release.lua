-- Leave once; with the last entry the lock is free, and that is published.
-- KEYS[1] lock hash   KEYS[2] channel   KEYS[3] latch
-- ARGV[1] owner   ARGV[2] lease, ms   ARGV[3] ttl of the latch, ms
-- Reply: nil: not the owner; 0 still in; 1 free; of a copy what the first was told.
local call = redis.call
local told = call('GET', KEYS[3])
if told then
  return tonumber(told)
end
if call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return nil
end
if call('HINCRBY', KEYS[1], ARGV[1], -1) > 0 then
  call('PEXPIRE', KEYS[1], ARGV[2])
  call('SET', KEYS[3], 0, 'PX', ARGV[3])
  return 0
end
call('DEL', KEYS[1])
call('PUBLISH', KEYS[2], 0)
call('SET', KEYS[3], 1, 'PX', ARGV[3])
return 1
