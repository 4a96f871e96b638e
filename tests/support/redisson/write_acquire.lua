-- Write alone. A reader that wants to write is refused like anybody else.
-- KEYS[1] lock hash   ARGV[1] lease, ms   ARGV[2] "owner:write"
-- Reply: nil: in; else the milliseconds that the hold in the way has left.
local call = redis.call
local mode = call('HGET', KEYS[1], 'mode')
if not mode then
  call('HSET', KEYS[1], 'mode', 'write', ARGV[2], 1)
  call('PEXPIRE', KEYS[1], ARGV[1])
  return nil
end
if mode == 'write' and call('HEXISTS', KEYS[1], ARGV[2]) == 1 then
  call('HINCRBY', KEYS[1], ARGV[2], 1)
  call('PEXPIRE', KEYS[1], call('PTTL', KEYS[1]) + ARGV[1])  -- the lease adds up
  return nil
end
return call('PTTL', KEYS[1])
