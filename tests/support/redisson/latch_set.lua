-- KEYS[1] count   KEYS[2] channel   ARGV[1] count
-- Reply: 1 set; 0 it was there.
local set = redis.call('SETNX', KEYS[1], ARGV[1])
if set == 1 then
  redis.call('PUBLISH', KEYS[2], 1)
end
return set
