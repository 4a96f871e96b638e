-- The queue of a fair lock as Redisson keeps it, and our tickets beside it.
-- KEYS[2] list of owners, first come first   KEYS[3] sorted set of them by deadline, ms
-- KEYS[4] hash: owner -> ticket "request claim arrived inbox holder", times in ms. Whoever waits
--         without one is Redisson's.
local patience = 300000  -- that Redisson has with each that waits

-- Whoever stands behind `place` waits for less than before: O(n), as with Redisson.
local function move_up(place, by)
  for _, owner in ipairs(redis.call('LRANGE', KEYS[2], place + 1, -1)) do
    redis.call('ZADD', KEYS[3], 'XX', 'INCR', string.format('%.0f', -by), owner)
  end
end

local function leave(owner)
  local place = redis.call('LPOS', KEYS[2], owner)
  if place then
    move_up(place, patience)
    redis.call('LREM', KEYS[2], 1, owner)
  end
  redis.call('ZREM', KEYS[3], owner)
  redis.call('HDEL', KEYS[4], owner)
  return place
end
