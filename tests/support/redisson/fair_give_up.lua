-- Leave the queue; those behind wait the less.
-- KEYS[1] queue   KEYS[2] deadlines   ARGV[1] owner   ARGV[2] wait, ms
-- Reply: 1 was in the queue; 0 not.
local behind = false
for _, waiter in ipairs(redis.call('LRANGE', KEYS[1], 0, -1)) do
  if behind then
    redis.call('ZINCRBY', KEYS[2], -tonumber(ARGV[2]), waiter)
  end
  behind = behind or waiter == ARGV[1]
end
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('LREM', KEYS[1], 0, ARGV[1])
return behind and 1 or 0
