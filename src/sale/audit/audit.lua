-- script examine
-- Look at a page of the stream, and of what is pending in it, at one instant.
-- KEYS[1] orders stream   ARGV[1] consumer group   ARGV[2] where to begin   ARGV[3] how many
-- Reply: nil, the group is not there; or
--        {where to go on (empty: the end was reached), {id, ...} handed out and pending for nobody,
--         {id, ...} pending and not in the stream, {id, ...} pending and not handed out}
-- include sale/orders.lua fields_of
-- include sale/orders.lua state_of_group
local group = state_of_group(KEYS[1], ARGV[1])
if not group then return false end

local function is_behind(one, other)
  local time, count = string.match(one, '^(%d+)-(%d+)$')
  local other_time, other_count = string.match(other, '^(%d+)-(%d+)$')
  if time ~= other_time then return tonumber(time) > tonumber(other_time) end
  return tonumber(count) > tonumber(other_count)
end

local most, position = tonumber(ARGV[3]), group['last-delivered-id']
local entries = redis.call('xrange', KEYS[1], ARGV[2], position, 'count', most)
local rows = redis.call('xpending', KEYS[1], ARGV[1], ARGV[2], '+', most)
local last = entries[most] and entries[most][1]
if rows[most] and not (last and is_behind(rows[most][1], last)) then last = rows[most][1] end

local pending, there = {}, {}
for _, row in ipairs(rows) do pending[row[1]] = true end
for _, entry in ipairs(entries) do there[entry[1]] = true end
local of_nobody, gone, early = {}, {}, {}
for _, entry in ipairs(entries) do
  local seen = not last or not is_behind(entry[1], last)
  if seen and not pending[entry[1]] then of_nobody[#of_nobody + 1] = entry[1] end
end
for _, row in ipairs(rows) do
  local id = row[1]
  if (not last or not is_behind(id, last)) and not there[id] then
    if is_behind(id, position) then early[#early + 1] = id else gone[#gone + 1] = id end
  end
end
return {last and '(' .. last or '', of_nobody, gone, early}
