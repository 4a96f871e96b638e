-- Take the next numbers of a series, all of one period.
-- KEYS[1] state hash   KEYS[2..p+1] the counters of p consecutive periods, oldest first
-- ARGV[1] how many   ARGV[2] largest number of a period   ARGV[3] definition of the series
-- ARGV[4] how long a counter is kept after its period, ms
-- ARGV[5..p+5] where the periods start, and where the last one ends; microseconds UTC
-- ARGV[p+6] prefix of the numbers
-- Reply: {'issued', now_us, period 1..p, first, how many} (fewer than asked: the period is full)
--        {'full', now_us, period}   {'range', now_us} (outside the table)
--        {'mismatch', stored definition, stored prefix}
local state = redis.call('hmget', KEYS[1], 'definition', 'last', 'prefix')
local prefix = ARGV[#ARGV]
-- A series that was made before prefixes were stored takes that of its next caller.
if (state[1] and state[1] ~= ARGV[3]) or (state[3] and state[3] ~= prefix) then
  return {'mismatch', state[1], state[3] or prefix}
end

local time = redis.call('time')
local now = math.max(time[1] * 1000000 + time[2], tonumber(state[2] or 0))
local periods = #KEYS - 1
if now < tonumber(ARGV[5]) or now >= tonumber(ARGV[5 + periods]) then return {'range', now} end
local period = 1
while now >= tonumber(ARGV[5 + period]) do period = period + 1 end

local counter = KEYS[1 + period]
local taken = tonumber(redis.call('get', counter) or 0)
local granted = math.min(tonumber(ARGV[1]), tonumber(ARGV[2]) - taken)
if granted <= 0 then return {'full', now, period} end
redis.call('incrby', counter, granted)
if taken == 0 then
  redis.call('pexpireat', counter, math.ceil(ARGV[5 + period] / 1000) + tonumber(ARGV[4]))
end
redis.call('hset', KEYS[1], 'definition', ARGV[3], 'prefix', prefix,
           'last', string.format('%.0f', now))
return {'issued', now, period, taken + 1, granted}
