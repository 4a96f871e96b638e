-- Free a lock, whoever holds it, and tell the head of the queue.
-- KEYS[1] lock hash   KEYS[2] queue   KEYS[3] deadlines   KEYS[4] channel
-- ARGV[1] the client's clock, ms
-- Reply: 1 freed; 0 it was free.
local call = redis.call
local head = call('LINDEX', KEYS[2], 0)
while head and tonumber(call('ZSCORE', KEYS[3], head) or 0) <= tonumber(ARGV[1]) do
  call('ZREM', KEYS[3], head)
  call('LPOP', KEYS[2])
  head = call('LINDEX', KEYS[2], 0)
end
local freed = call('DEL', KEYS[1])
if freed == 1 and head then
  call('PUBLISH', KEYS[4] .. ':' .. head, 0)
end
return freed
