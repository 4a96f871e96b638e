-- KEYS[1] count   KEYS[2] channel
-- Reply: what is left; at 0 the latch is gone and its waiters are told.
local left = redis.call('DECR', KEYS[1])
if left <= 0 then
  redis.call('DEL', KEYS[1])
end
if left == 0 then
  redis.call('PUBLISH', KEYS[2], 0)
end
return left
