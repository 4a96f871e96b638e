-- Admit a token that is not smaller than the largest so far.
-- KEYS[1] largest token   ARGV[1] token, decimal, at most 2^53: exact as a Lua number
-- Reply: nil admitted; else the largest token.
local largest = redis.call('GET', KEYS[1])
if largest and tonumber(ARGV[1]) < tonumber(largest) then
  return largest
end
if ARGV[1] ~= largest then
  redis.call('SET', KEYS[1], ARGV[1])
end
return nil
