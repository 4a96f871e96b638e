-- Prolong the holds of many writers.
-- KEYS[i] lock hash
-- ARGV, two for each hold: request id, lease in ms
-- Reply: for each key 1 prolonged, 0 the hold is gone.
-- include lock/shared/holds.lua
local prolonged = {}
for i, key in ipairs(KEYS) do
  local held = hold_of(key, ARGV[2 * i - 1])
  if held then
    prolong_key(key, tonumber(ARGV[2 * i]))
  end
  prolonged[i] = held and 1 or 0
end
return prolonged
