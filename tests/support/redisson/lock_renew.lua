-- Prolong many holds.
-- KEYS[i] lock hash   ARGV[1] lease, ms   ARGV[i + 1] owner of that hold
-- Reply: for each key 1 prolonged, 0 not held by it.
local prolonged = {}
for i, key in ipairs(KEYS) do
  prolonged[i] = redis.call('HEXISTS', key, ARGV[i + 1])
  if prolonged[i] == 1 then
    redis.call('PEXPIRE', key, ARGV[1])
  end
end
return prolonged
