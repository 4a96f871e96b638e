-- Read along with other readers, or beside one's own write hold.
-- KEYS[1] lock hash   KEYS[2] "{name}:owner:rwlock_timeout"   ARGV[1] lease, ms   ARGV[2] owner
-- Reply: nil: in; else the milliseconds that the hold in the way has left.
local call = redis.call
local mode = call('HGET', KEYS[1], 'mode')
if mode == 'write' and call('HEXISTS', KEYS[1], ARGV[2] .. ':write') == 0 then
  return call('PTTL', KEYS[1])
end
if not mode then
  call('HSET', KEYS[1], 'mode', 'read')
end
local entries = call('HINCRBY', KEYS[1], ARGV[2], 1)
call('SET', KEYS[2] .. ':' .. entries, 1, 'PX', ARGV[1])
call('PEXPIRE', KEYS[1], math.max(call('PTTL', KEYS[1]), tonumber(ARGV[1])))
return nil
