-- Prolong the holds of many readers.
-- KEYS[i] lock hash
-- ARGV, three for each hold: prefix of its hold keys, request id, lease in ms
-- Reply: for each key 1 prolonged, 0 the hold is gone.
-- include lock/shared/holds.lua
local prolonged = {}
for i, key in ipairs(KEYS) do
  local kind, _, _, owner = hold_of(key, ARGV[3 * i - 1])
  if kind then
    prolong(key, ARGV[3 * i - 2], kind, owner, tonumber(ARGV[3 * i]))
  end
  prolonged[i] = kind and 1 or 0
end
return prolonged
