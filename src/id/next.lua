-- Take the next ids: seconds and sequence apart, since a Lua number holds 53 bits.
-- KEYS[1] state hash
-- Goes on while its slot moves: it has one key, and leaves it there.
-- ARGV[1] how many   ARGV[2] epoch of the layout, seconds   ARGV[3] largest sequence
-- ARGV[4], ARGV[5] second and sequence of the latest id that the caller got, 0 0: none. The store
--   may have lost it.
-- Reply: {'issued', seconds since the epoch, first sequence} · {'full', now, s} · {'range', now, s}
--   (outside 31 bits)
--   an error: the hash is something else, a lock say, whose end would be the end of the ids
-- include store/number.lua number
local state = redis.call('hmget', KEYS[1], 'last', 'day', 'sequence')
local known = number_in(state[1]) and number_in(state[2]) and number_in(state[3])
if redis.call('hlen', KEYS[1]) ~= (known and 3 or 0) then
  return redis.error_reply('WRONGTYPE the hash of this name has no ids; nothing was written')
end
local time = redis.call('time')
local now = math.max(tonumber(time[1]), tonumber(state[1] or 0), tonumber(ARGV[4]))
local seconds = now - tonumber(ARGV[2])
if seconds < 0 then return {'range', tonumber(time[1])} end
if seconds > 2147483647 then return {'range', now} end

local day = math.floor(now / 86400)
local taken = 0
if tonumber(state[2] or -1) == day then taken = tonumber(state[3]) end
if math.floor(tonumber(ARGV[4]) / 86400) == day then taken = math.max(taken, tonumber(ARGV[5])) end
local last = taken + tonumber(ARGV[1])
if last > tonumber(ARGV[3]) then return {'full', now} end
redis.call('hset', KEYS[1], 'last', now, 'day', day, 'sequence', string.format('%.0f', last))
return {'issued', seconds, taken + 1}
