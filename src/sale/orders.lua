-- script acknowledge
-- Forget entries that are safe in the database.
-- KEYS[1] orders stream   KEYS[2] sale hash
-- ARGV[1] consumer group   ARGV[2] how far the database has come   ARGV[3..] entry ids
-- Reply: how many were still pending
-- include sale/recovery.lua raise_mark
if redis.call('hexists', KEYS[2], 'capacity') == 1 then raise_mark(KEYS[2], ARGV[2]) end
local acknowledged = 0
for at = 3, #ARGV, 4000 do  -- Lua has room for some 8000 words on its stack
  local last = math.min(at + 3999, #ARGV)
  acknowledged = acknowledged + redis.call('xack', KEYS[1], ARGV[1], unpack(ARGV, at, last))
  redis.call('xdel', KEYS[1], unpack(ARGV, at, last))
end
return acknowledged

-- script claim
-- Take over entries that nobody touched for a while, each with how often workers took it before.
-- KEYS[1] orders stream
-- ARGV[1] consumer group   ARGV[2] consumer   ARGV[3] idle, ms   ARGV[4] where to begin
-- ARGV[5] most entries     ARGV[6] deliveries of a suspect
-- Reply: {where to go on ('0-0': the end was reached), {entry, ...}, {id, deliveries, ...}}
--        The entries are delivered now, and counted so. Suspects, which follow, were delivered so
--        often already: they are this consumer's too, and not counted.
local claimed = redis.call('xautoclaim', KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4],
                           'count', ARGV[5], 'justid')
local ids = claimed[2]
local deliveries = {}
local from = ids[1]
while from do  -- what else this consumer has stands between them
  local rows = redis.call('xpending', KEYS[1], ARGV[1], from, ids[#ids], 1000, ARGV[2])
  for _, row in ipairs(rows) do deliveries[row[1]] = row[4] end
  from = rows[1000] and '(' .. rows[1000][1]
end
local delivered, suspects = {}, {}
for _, id in ipairs(ids) do
  local count = deliveries[id] or 0
  if count < tonumber(ARGV[6]) then
    delivered[#delivered + 1] = id
  else
    suspects[#suspects + 1], suspects[#suspects + 2] = id, count
  end
end
local entries = {}
if #delivered > 0 then
  entries = redis.call('xclaim', KEYS[1], ARGV[1], ARGV[2], 0, unpack(delivered))
end
return {claimed[1], entries, suspects}

-- script reread
-- Give a consumer what it has pending once more; that counts as no delivery.
-- KEYS[1] orders stream
-- ARGV[1] consumer group   ARGV[2] consumer   ARGV[3] where to begin   ARGV[4] how many to look at
-- ARGV[5] deliveries of a suspect, which is left until it is claimed
-- Reply: {where to go on (empty: the end was reached), {entry, ...}}
local rows = redis.call('xpending', KEYS[1], ARGV[1], ARGV[3], '+', ARGV[4], ARGV[2])
local entries = {}
for _, row in ipairs(rows) do
  if row[4] < tonumber(ARGV[5]) then
    entries[#entries + 1] = redis.call('xrange', KEYS[1], row[1], row[1])[1]
  end
end
return {#rows < tonumber(ARGV[4]) and '' or '(' .. rows[#rows][1], entries}

-- script adopt
-- Take entries that the group has behind it and that are pending for nobody: XGROUP DELCONSUMER
-- and XGROUP SETID leave them so.
-- KEYS[1] orders stream
-- ARGV[1] consumer group   ARGV[2] consumer   ARGV[3] where to begin   ARGV[4] how many to look at
-- Reply: {where to go on (empty: the end was reached), {entry, ...}}
-- include sale/orders.lua fields_of
-- include sale/orders.lua state_of_group
local group = state_of_group(KEYS[1], ARGV[1])
if not group or redis.call('xlen', KEYS[1]) <= group.pending then return {'', {}} end
local found = redis.call('xrange', KEYS[1], ARGV[3], group['last-delivered-id'], 'count', ARGV[4])
if #found == 0 then return {'', {}} end
local pending = {}
local from, last = found[1][1], found[#found][1]
while from do
  local rows = redis.call('xpending', KEYS[1], ARGV[1], from, last, 1000)
  for _, row in ipairs(rows) do pending[row[1]] = true end
  from = rows[1000] and '(' .. rows[1000][1]
end
local entries = {}
for _, entry in ipairs(found) do
  if not pending[entry[1]] then
    redis.call('xclaim', KEYS[1], ARGV[1], ARGV[2], 0, entry[1], 'retrycount', 1, 'force', 'justid')
    entries[#entries + 1] = entry
  end
end
return {#found < tonumber(ARGV[4]) and '' or '(' .. last, entries}

-- script tidy
-- Remove consumers that have nothing pending and were not seen for a while: those of dead workers.
-- One that lives is in the group again with its next read.
-- KEYS[1] orders stream   ARGV[1] consumer group   ARGV[2] idle, ms
-- Reply: how many
local removed = 0
-- include sale/orders.lua fields_of
for _, reply in ipairs(redis.call('xinfo', 'consumers', KEYS[1], ARGV[1])) do
  local info = fields_of(reply)
  if info.pending == 0 and info.idle >= tonumber(ARGV[2]) then
    redis.call('xgroup', 'delconsumer', KEYS[1], ARGV[1], info.name)
    removed = removed + 1
  end
end
return removed

-- script regroup
-- Make the group again that was lost. All that stands in the stream is delivered once more: what
-- was brought in and acknowledged is not there any more.
-- KEYS[1] sale hash   KEYS[2] orders stream   ARGV[1] consumer group
-- Reply: 1, or 0 when there is no such sale, or it is archived
local sale = redis.call('hmget', KEYS[1], 'format', 'archived')
if not sale[1] or sale[2] then return 0 end
local made = redis.pcall('xgroup', 'create', KEYS[2], ARGV[1], 0, 'mkstream')
if made.err and not string.find(made.err, 'BUSYGROUP', 1, true) then return made end
return 1

-- script bury
-- Move one entry to the dead letters, with all its fields.
-- KEYS[1] orders stream   KEYS[2] dead letters
-- ARGV[1] consumer group   ARGV[2] entry id   ARGV[3] reason
-- Reply: 1, or 0 when another worker has dealt with it
if redis.call('xack', KEYS[1], ARGV[1], ARGV[2]) == 0 then return 0 end
local found = redis.call('xrange', KEYS[1], ARGV[2], ARGV[2])
if #found == 0 then return 0 end
redis.call('xadd', KEYS[2], '*', 'reason', ARGV[3], 'entry', ARGV[2], unpack(found[1][2]))
redis.call('xdel', KEYS[1], ARGV[2])
return 1

-- script leave
-- Remove a consumer that stops from the group, unless entries are pending for it: the worker that
-- claims them must still see them.
-- KEYS[1] orders stream   ARGV[1] consumer group   ARGV[2] consumer
-- Reply: 1 when it is gone
if #redis.call('xpending', KEYS[1], ARGV[1], '-', '+', 1, ARGV[2]) > 0 then return 0 end
redis.call('xgroup', 'delconsumer', KEYS[1], ARGV[1], ARGV[2])
return 1

-- script revive
-- Send a dead letter to the workers again.
-- KEYS[1] orders stream   KEYS[2] dead letters   ARGV[1] id of the dead letter
-- Reply: 1, or 0 when there is none with that id
local found = redis.call('xrange', KEYS[2], ARGV[1], ARGV[1])
if #found == 0 then return 0 end
redis.call('xadd', KEYS[1], '*', unpack(found[1][2], 5))
redis.call('xdel', KEYS[2], ARGV[1])
return 1

-- script flow
-- How entries are on their way.
-- KEYS[1] orders stream   ARGV[1] consumer group   ARGV[2] most consumers
-- Reply: {now, ms, entries, id of the oldest entry or '', {name, pending, idle, ms, ...}}
-- include sale/orders.lua fields_of
local time = redis.call('time')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local oldest = redis.call('xrange', KEYS[1], '-', '+', 'count', 1)[1]
local workers = {}
local consumers = redis.pcall('xinfo', 'consumers', KEYS[1], ARGV[1])  -- no stream, or no group
if not consumers.err then
  for at = 1, math.min(#consumers, tonumber(ARGV[2])) do
    local info = fields_of(consumers[at])
    workers[#workers + 1], workers[#workers + 2], workers[#workers + 3] =
      info.name, info.pending, info.idle
  end
end
return {now, redis.call('xlen', KEYS[1]), oldest and oldest[1] or '', workers}

-- part fields_of
-- An answer of XINFO, a name before each value, as a table.
local function fields_of(reply)
  local fields = {}
  for i = 1, #reply, 2 do fields[reply[i]] = reply[i + 1] end
  return fields
end

-- part state_of_group
-- What XINFO GROUPS says of a group; nil where it is not there.
-- REQUIRES: part fields_of
local function state_of_group(stream, name)
  if redis.call('exists', stream) == 0 then return nil end
  for _, reply in ipairs(redis.call('xinfo', 'groups', stream)) do
    local group = fields_of(reply)
    if group.name == name then return group end
  end
end
