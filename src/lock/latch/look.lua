-- What a waiter wants to know.
-- KEYS[1] count   KEYS[2] number of the last opening
-- Reply: {count, 0: open; number of the last opening, 0: none that is remembered}
local count = tonumber(redis.call('GET', KEYS[1]) or 0)
if not count then
  return redis.error_reply('WRONGTYPE the key holds no count')
end
return {math.max(count, 0), tonumber(redis.call('GET', KEYS[2]) or 0)}
