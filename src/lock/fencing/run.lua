-- Run a command if its token is not smaller than the largest so far.
-- KEYS[1] largest token   KEYS[2..] the keys of the command
-- ARGV[1] token, decimal, at most 2^53: exact as a Lua number   ARGV[2..] the command
-- Reply: {1, reply of the command} · {0, the largest token}
local largest = redis.call('GET', KEYS[1])
if largest and tonumber(ARGV[1]) < tonumber(largest) then
  return {0, largest}
end
if ARGV[1] ~= largest then
  redis.call('SET', KEYS[1], ARGV[1])
end
return {1, redis.call(unpack(ARGV, 2))}
