-- Forgets the readers whose hold keys have ended: they are dead.
-- Returns the longest that one of the others has left, in ms, nil where there is none; and whether
-- one of them is not ours.
local function survey()
  local fields = call('HGETALL', KEYS[1])
  local ours, readers = {}, {}
  for i = 1, #fields, 2 do
    local field, value = fields[i], fields[i + 1]
    if string.sub(field, 1, 7) == 'sluice:' then
      local owner = string.match(value, '^r %d+ %d+ (%S+)')
      if owner then
        ours[owner] = ours[owner] or {}
        table.insert(ours[owner], field)
      end
    elseif field ~= 'mode' and string.sub(field, -6) ~= ':write' then
      readers[field] = tonumber(value)
    end
  end
  local longest, foreign
  for owner, entries in pairs(readers) do
    local left = -2
    for n = 1, entries do
      left = math.max(left, call('PTTL', hold_key(ARGV[1], owner, n)))
    end
    if left == -2 then
      call('HDEL', KEYS[1], owner, unpack(ours[owner] or {}))
    else
      longest = math.max(longest or 1, left)
      foreign = foreign or not ours[owner]
    end
  end
  return longest, foreign
end
