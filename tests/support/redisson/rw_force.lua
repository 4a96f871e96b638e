-- Free a read-write lock that is in a mode, whoever holds it.
-- KEYS[1] lock hash   KEYS[2] channel   ARGV[1] mode   ARGV[2] payload
-- Reply: 1 freed; 0 it is not in that mode.
if redis.call('HGET', KEYS[1], 'mode') ~= ARGV[1] then
  return 0
end
redis.call('DEL', KEYS[1])
redis.call('PUBLISH', KEYS[2], ARGV[2])
return 1
