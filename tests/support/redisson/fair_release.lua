-- Leave once; with the last entry the head of the queue is told on its own channel.
-- KEYS[1] lock hash   KEYS[2] queue   KEYS[3] deadlines   KEYS[4] channel   KEYS[5] latch
-- ARGV[1] owner   ARGV[2] lease, ms   ARGV[3] ttl of the latch, ms   ARGV[4] the client's clock, ms
-- Reply: nil: not the owner; 0 still in; 1 free; of a copy what the first was told.
local call = redis.call
local told = call('GET', KEYS[5])
if told then
  return tonumber(told)
end
local head = call('LINDEX', KEYS[2], 0)
while head and tonumber(call('ZSCORE', KEYS[3], head) or 0) <= tonumber(ARGV[4]) do
  call('ZREM', KEYS[3], head)
  call('LPOP', KEYS[2])
  head = call('LINDEX', KEYS[2], 0)
end
if call('EXISTS', KEYS[1]) == 1 then
  if call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
    return nil
  end
  if call('HINCRBY', KEYS[1], ARGV[1], -1) > 0 then
    call('PEXPIRE', KEYS[1], ARGV[2])
    call('SET', KEYS[5], 0, 'PX', ARGV[3])
    return 0
  end
  call('DEL', KEYS[1])
end
call('SET', KEYS[5], 1, 'PX', ARGV[3])
if head then
  call('PUBLISH', KEYS[4] .. ':' .. head, 0)
end
return 1
