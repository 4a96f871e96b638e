-- Count down, once for each request; open the latch at zero.
-- KEYS[1] count   KEYS[2] zset of requests: id, when in ms   KEYS[3] number of the last opening
-- ARGV[1] request id   ARGV[2] by how much   ARGV[3] channel
-- ARGV[4] how long a request is remembered, ms   ARGV[5] how many at most
-- ARGV[6] how long an opening is remembered, ms
-- Reply: the count that is left, 0: open.
local call = redis.call
local left = tonumber(call('GET', KEYS[1]) or 0)
if not left then
  return redis.error_reply('WRONGTYPE the key holds no count')
end
if call('ZSCORE', KEYS[2], ARGV[1]) then
  return left  -- an earlier copy has counted
end

local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
call('ZADD', KEYS[2], now, ARGV[1])
call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now - ARGV[4])
call('ZREMRANGEBYRANK', KEYS[2], 0, -1 - ARGV[5])
call('PEXPIRE', KEYS[2], ARGV[4])

if left <= 0 then
  return 0
end
if left > tonumber(ARGV[2]) then
  return call('DECRBY', KEYS[1], ARGV[2])
end
call('DEL', KEYS[1])
call('INCR', KEYS[3])
call('PEXPIRE', KEYS[3], ARGV[6])
call('PUBLISH', ARGV[3], '0')
return 0
