-- Give a permit back.
-- KEYS[1] free permits   KEYS[2] ends   KEYS[3] channel
-- ARGV[1] id   ARGV[2] the client's clock, ms
-- Reply: 1; 0 it had ended or is unknown.
local call = redis.call
local ends = call('ZSCORE', KEYS[2], ARGV[1])
if not ends then
  return 0
end
call('ZREM', KEYS[2], ARGV[1])
call('PUBLISH', KEYS[3], call('INCRBY', KEYS[1], 1))
return tonumber(ends) > tonumber(ARGV[2]) and 1 or 0
