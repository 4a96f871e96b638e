-- Prolong many holds of permits.
-- KEYS[i] sorted set of holds   ARGV, two for each: member, lease in ms
-- Reply: for each key 1 prolonged, 0 the hold is gone.
-- include lock/hold/parts.lua server_time
local prolonged = {}
for i, key in ipairs(KEYS) do
  local member = ARGV[2 * i - 1]
  -- pcall: a key that became something else must not take the other holds with it
  local ends = redis.pcall('ZSCORE', key, member)
  prolonged[i] = 0
  if type(ends) == 'string' and tonumber(ends) > server_time() then
    redis.call('ZADD', key, string.format('%.0f', server_time() + ARGV[2 * i]), member)
    prolonged[i] = 1
  end
end
return prolonged
