-- Take permits that have names and end.
-- KEYS[1] free permits   KEYS[2] ends   KEYS[3] channel
-- ARGV[1] permits   ARGV[2] when they end, ms   ARGV[3] the client's clock, ms
-- ARGV[4...] their ids
-- Reply: OK; ":ms": refused, the first permit ends then; nil: refused, and none has an end.
local call = redis.call
local wanted = tonumber(ARGV[1])
local ended = call('ZRANGEBYSCORE', KEYS[2], 0, ARGV[3], 'LIMIT', 0, wanted)
if #ended > 0 then
  call('ZREM', KEYS[2], unpack(ended))
  local free = call('INCRBY', KEYS[1], #ended)
  if free > 0 then
    call('PUBLISH', KEYS[3], free)
  end
end
if tonumber(call('GET', KEYS[1]) or 0) >= wanted then
  call('DECRBY', KEYS[1], wanted)
  for i = 4, #ARGV do
    call('ZADD', KEYS[2], ARGV[2], ARGV[i])
  end
  local left = call('PTTL', KEYS[1])
  if left > 0 then
    call('PEXPIRE', KEYS[2], left)
  end
  return 'OK'
end
local first = call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')[2]
if first and tonumber(first) < 922337203685477 then
  return ':' .. first
end
return nil
