-- Prolong many holds.
-- KEYS[i] lock hash   ARGV[2i-1] request id of the hold   ARGV[2i] lease, ms
-- Reply: for each key 1 prolonged, 0 the hold is gone.
local prolonged = {}
for i, key in ipairs(KEYS) do
  -- pcall: a key that became something else must not take the other holds with it
  if redis.pcall('HGET', key, 'sluice:request') == ARGV[2 * i - 1] then
    redis.call('PEXPIRE', key, ARGV[2 * i])
    prolonged[i] = 1
  else
    prolonged[i] = 0
  end
end
return prolonged
