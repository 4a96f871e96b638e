-- KEYS[1] settings   KEYS[2], KEYS[3] free and given permits of all
-- KEYS[4], KEYS[5] those of this client
-- ARGV[1] permits   ARGV[2] the client's clock, ms   ARGV[3] 16 random bytes
-- Reply: nil: granted; else how long to sleep, ms.
local call = redis.call
local rate, interval, kind = unpack(call('HMGET', KEYS[1], 'rate', 'interval', 'type'))
if not rate then
  return redis.error_reply('the rate limiter has no rate')
end
rate, interval = tonumber(rate), tonumber(interval)
local wanted, now = tonumber(ARGV[1]), tonumber(ARGV[2])
if wanted > rate then
  return redis.error_reply('more permits than the rate has')
end
local value, given = KEYS[2], KEYS[3]
if kind == '1' then
  value, given = KEYS[4], KEYS[5]
end

local function sum(members)
  local permits = 0
  for _, member in ipairs(members) do
    local _, count = struct.unpack('Bc0I', member)
    permits = permits + count
  end
  return permits
end

local free = tonumber(call('GET', value) or rate)
local back = sum(call('ZRANGEBYSCORE', given, 0, now - interval))
if back > 0 then
  call('ZREMRANGEBYSCORE', given, 0, now - interval)
  free = free + back
  if free > rate then
    free = rate - sum(call('ZRANGE', given, 0, -1))
  end
  call('SET', value, free)
end
if free < wanted then
  local oldest = call('ZRANGE', given, 0, 0, 'WITHSCORES')[2]
  return 3 + interval - (now - tonumber(oldest or now))
end
call('SET', value, free - wanted)
call('ZADD', given, now, struct.pack('Bc0I', #ARGV[3], ARGV[3], wanted))
local left = call('PTTL', KEYS[1])
if left > 0 then
  call('PEXPIRE', value, left)
  call('PEXPIRE', given, left)
end
return nil
