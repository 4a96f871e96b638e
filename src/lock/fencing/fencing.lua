-- The scripts of Fence. In both:
-- KEYS[1] largest token   ARGV[1] token, decimal, at most 2^53: exact as a Lua number

-- part admit
-- The largest token if the one asked for is smaller, else nil: it is the largest now. Raises
-- WRONGTYPE for a string that is no token.
local function larger_token()
  local largest = redis.call('GET', KEYS[1])
  if largest and not (#largest <= 16 and string.match(largest, '^%d+$')) then
    redis.call('LLEN', KEYS[1])
  end
  if largest and tonumber(ARGV[1]) < tonumber(largest) then
    return largest
  end
  if ARGV[1] ~= largest then
    redis.call('SET', KEYS[1], ARGV[1])
  end
end

-- script admit
-- Admit a token that is not smaller than the largest so far.
-- Goes on while its slot moves: it has one key, and leaves it there.
-- Reply: nil admitted; else the largest token.
-- include lock/fencing/fencing.lua admit
return larger_token()

-- script run
-- Run a command if its token is not smaller than the largest so far.
-- KEYS[2..] the keys of the command   ARGV[2..] the command
-- Reply: {1, reply of the command} · {0, the largest token}
-- include lock/fencing/fencing.lua admit
local larger = larger_token()
if larger then
  return {0, larger}
end
return {1, redis.call(unpack(ARGV, 2))}
