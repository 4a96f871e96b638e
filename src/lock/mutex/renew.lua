-- Prolong many holds, and say who is in.
-- KEYS[i] lock hash
-- ARGV, six for each hold: request id, lease in ms, owner, entries, holder, how long in ms
-- Reply: for each key 1 prolonged, 0 the hold is gone.
-- include lock/wait/server_time.lua
-- include lock/mutex/own.lua
local prolonged = {}
for i, key in ipairs(KEYS) do
  local at = 6 * i - 5
  -- pcall: a key that became something else must not take the other holds with it
  if redis.pcall('HGET', key, 'sluice:request') == ARGV[at] then
    own(key, ARGV[at + 2], ARGV[at + 3], ARGV[at + 4], ARGV[at + 5])
    redis.call('PEXPIRE', key, ARGV[at + 1])
    prolonged[i] = 1
  else
    prolonged[i] = 0
  end
end
return prolonged
