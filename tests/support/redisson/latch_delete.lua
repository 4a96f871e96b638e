-- KEYS[1] count   KEYS[2] channel
-- Reply: 1 deleted; 0 it was not there.
local deleted = redis.call('DEL', KEYS[1])
if deleted == 1 then
  redis.call('PUBLISH', KEYS[2], 1)
end
return deleted
