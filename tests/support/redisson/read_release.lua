-- Stop reading once.
-- KEYS[1] lock hash   KEYS[2] channel   KEYS[3] latch   KEYS[4] "{name}"
-- ARGV[1] owner   ARGV[2] ttl of the latch, ms
-- Reply: nil: not a reader; 0 others are in; 1 free; of a copy what the first was told.
local call = redis.call
local told = call('GET', KEYS[3])
if told then
  return tonumber(told)
end
local function answer(word)
  call('SET', KEYS[3], word, 'PX', ARGV[2])
  return word
end
local mode = call('HGET', KEYS[1], 'mode')
if not mode then
  call('PUBLISH', KEYS[2], 0)
  answer(1)
  return nil
end
if call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return nil
end
local entries = call('HINCRBY', KEYS[1], ARGV[1], -1)
if entries == 0 then
  call('HDEL', KEYS[1], ARGV[1])
end
call('DEL', KEYS[4] .. ':' .. ARGV[1] .. ':rwlock_timeout:' .. (entries + 1))
if call('HLEN', KEYS[1]) > 1 then
  local longest = -3
  local fields = call('HGETALL', KEYS[1])
  for i = 1, #fields, 2 do
    for entry = 1, tonumber(fields[i + 1]) or 0 do
      local left = call('PTTL', KEYS[4] .. ':' .. fields[i] .. ':rwlock_timeout:' .. entry)
      longest = math.max(longest, left)
    end
  end
  if longest > 0 then
    call('PEXPIRE', KEYS[1], longest)
    return answer(0)
  end
  if mode == 'write' then
    return answer(0)
  end
end
call('DEL', KEYS[1])
call('PUBLISH', KEYS[2], 0)
return answer(1)
