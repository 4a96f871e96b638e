-- Set the count, once for each request; 0 opens the latch.
-- KEYS[1] count   KEYS[2] zset of requests: id, when in ms   KEYS[3] number of the last opening
-- ARGV[1] request id   ARGV[2] count   ARGV[3] channel
-- ARGV[4] how long a request is remembered, ms   ARGV[5] how many at most
-- ARGV[6] how long an opening is remembered, ms   ARGV[7] 1: whatever the count is now
-- Reply: 1 set, now or by an earlier copy; 0 the latch is not open.
local call = redis.call
if call('ZSCORE', KEYS[2], ARGV[1]) then
  return 1
end
local closed = call('EXISTS', KEYS[1]) == 1
if closed and ARGV[7] == '0' then
  return 0
end

local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
call('ZADD', KEYS[2], now, ARGV[1])
call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now - ARGV[4])
call('ZREMRANGEBYRANK', KEYS[2], 0, -1 - ARGV[5])
call('PEXPIRE', KEYS[2], ARGV[4])

if ARGV[2] ~= '0' then
  call('SET', KEYS[1], ARGV[2])
  call('PUBLISH', ARGV[3], '1')
elseif closed then
  call('DEL', KEYS[1])
  call('INCR', KEYS[3])
  call('PEXPIRE', KEYS[3], ARGV[6])
  call('PUBLISH', ARGV[3], '0')
end
return 1
