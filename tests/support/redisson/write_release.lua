-- Stop writing once; who also reads goes on reading, and nobody is told.
-- KEYS[1] lock hash   KEYS[2] channel   KEYS[3] latch
-- ARGV[1] "owner:write"   ARGV[2] lease, ms   ARGV[3] ttl of the latch, ms
-- Reply: nil: not the writer; 0 still in; 1 it writes no more; of a copy what the first was told.
local call = redis.call
local told = call('GET', KEYS[3])
if told then
  return tonumber(told)
end
local function answer(word)
  call('SET', KEYS[3], word, 'PX', ARGV[3])
  return word
end
if call('HEXISTS', KEYS[1], 'mode') == 0 then
  call('PUBLISH', KEYS[2], 1)
  answer(1)
  return nil
end
if call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return nil
end
if call('HINCRBY', KEYS[1], ARGV[1], -1) > 0 then
  call('PEXPIRE', KEYS[1], ARGV[2])
  return answer(0)
end
call('HDEL', KEYS[1], ARGV[1])
if call('HLEN', KEYS[1]) == 1 then
  call('DEL', KEYS[1])
  call('PUBLISH', KEYS[2], 1)
else
  call('HSET', KEYS[1], 'mode', 'read')
end
return answer(1)
