-- Take a free lock if it is the caller's turn, else stand in the queue if asked to.
-- KEYS[1] lock hash   KEYS[2] queue   KEYS[3] deadlines
-- ARGV[1] lease, ms   ARGV[2] owner   ARGV[3] wait, ms   ARGV[4] the client's clock, ms
-- ARGV[5] "queue" or "once"
-- Reply: nil: in; else how long to sleep, ms; of "once" always 1.
local call = redis.call
local owner, wait, now = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local head = call('LINDEX', KEYS[2], 0)
while head and tonumber(call('ZSCORE', KEYS[3], head) or 0) <= now do
  call('ZREM', KEYS[3], head)
  call('LPOP', KEYS[2])
  head = call('LINDEX', KEYS[2], 0)
end
if call('EXISTS', KEYS[1]) == 0 and (not head or head == owner) then
  call('LPOP', KEYS[2])
  call('ZREM', KEYS[3], owner)
  for _, waiter in ipairs(call('ZRANGE', KEYS[3], 0, -1)) do
    call('ZINCRBY', KEYS[3], -wait, waiter)
  end
  call('HSET', KEYS[1], owner, 1)
  call('PEXPIRE', KEYS[1], ARGV[1])
  return nil
end
if call('HEXISTS', KEYS[1], owner) == 1 then
  call('HINCRBY', KEYS[1], owner, 1)
  call('PEXPIRE', KEYS[1], ARGV[1])
  return nil
end
if ARGV[5] == 'once' then
  return 1
end
local left = call('PTTL', KEYS[1])
if call('ZSCORE', KEYS[3], owner) then
  return math.max(0, left)
end
local last = call('LINDEX', KEYS[2], -1)
if last then
  left = tonumber(call('ZSCORE', KEYS[3], last)) - now
end
call('ZADD', KEYS[3], string.format('%.0f', left + now + wait), owner)
call('RPUSH', KEYS[2], owner)
return left
