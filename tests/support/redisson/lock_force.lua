-- Free a lock, whoever holds it.
-- KEYS[1] lock hash   KEYS[2] channel
-- Reply: 1 freed; 0 it was free.
local freed = redis.call('DEL', KEYS[1])
if freed == 1 then
  redis.call('PUBLISH', KEYS[2], 0)
end
return freed
