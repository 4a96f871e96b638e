-- Enter a hold once more, or leave it while entries remain: says how many entries there are from
-- now on.
-- KEYS[1] lock hash
-- ARGV[1] prefix of hold keys   ARGV[2] request id of the hold   ARGV[3] lease, ms
-- ARGV[4] entries
-- Reply: 1 done; 0 the hold is gone.
-- include lock/shared/holds.lua
local request, lease, entries = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local kind, before, since, owner, holder = hold_of(KEYS[1], request)
if not kind then
  return 0
end
if entries > before then
  enter(KEYS[1], ARGV[1], kind, owner, entries - before, lease)
elseif entries < before then
  leave(KEYS[1], ARGV[1], kind, owner, before - entries)
end
note_hold(KEYS[1], request, kind, entries, since, owner, holder)
prolong(KEYS[1], ARGV[1], kind, owner, lease)
return 1
