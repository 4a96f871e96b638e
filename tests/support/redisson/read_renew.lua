-- Prolong a reader's hold, entry by entry.
-- KEYS[1] lock hash   KEYS[2] "{name}:owner:rwlock_timeout"   ARGV[1] lease, ms   ARGV[2] owner
-- Reply: 1 prolonged; 0 not a reader.
local entries = tonumber(redis.call('HGET', KEYS[1], ARGV[2]) or 0)
if entries == 0 then
  return 0
end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
for entry = 1, entries do
  redis.call('PEXPIRE', KEYS[2] .. ':' .. entry, ARGV[1])
end
return 1
