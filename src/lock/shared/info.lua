-- Who is in and who waits, for people.
-- KEYS: see lock/shared/settle
-- ARGV[1] prefix of hold keys   ARGV[2] index of the last ticket of each queue to be shown
-- Reply: {server's time in ms, last token or nil, holders, tickets of writers, tickets of readers};
--        of each holder: kind, owner, entries, ms left, and since and holder, or nil for a stranger's.
-- include lock/shared/holds.lua
-- include lock/wait/server_time.lua
local ours = {}
local holders = {}
local fields = call('HGETALL', KEYS[1])

local function left_of(kind, owner, entries)
  local left = kind == 'w' and call('PTTL', KEYS[1]) or -2
  for n = 1, kind == 'r' and entries or 0 do
    left = math.max(left, call('PTTL', hold_key(ARGV[1], owner, n)))
  end
  return left
end

for i = 2, #fields, 2 do
  local kind, since, owner, holder = string.match(fields[i], '^([rw]) %d+ (%d+) (%S+) (.*)$')
  if kind then
    ours[kind .. owner] = {since, holder}
  end
end
for i = 1, #fields, 2 do
  local entries = tonumber(fields[i + 1])
  if entries then
    local writer = string.match(fields[i], '^(.*):write$')
    local kind, owner = writer and 'w' or 'r', writer or fields[i]
    local left = left_of(kind, owner, entries)
    if left > -2 then
      local known = ours[kind .. owner] or {false, false}
      table.insert(holders, {kind, owner, entries, left, known[1], known[2]})
    end
  end
end
return {server_time(), call('GET', KEYS[2]), holders, call('LRANGE', KEYS[3], 0, ARGV[2]),
        call('LRANGE', KEYS[4], 0, ARGV[2])}
