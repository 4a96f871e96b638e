-- The holds of a SharedMutex: kept, counted, prolonged, shown.

-- part holds
-- REQUIRES: part server_time
-- What stands in the hash of a read-write lock. Redisson's are "mode", and for each owner OWNER or
-- OWNER:write with the number of its entries. Each hold of ours is noted as
--   sluice:REQUEST = "KIND ENTRIES SINCE OWNER HOLDER"   KIND r or w; SINCE by the server's time,
--   ms
-- in that hash for a reader. No value of ours may look like a number: Redisson's read release
-- counts down from whatever does. For a writer it is noted in the hash sluice_rw_writing:PREFIX,
-- which has `turn` too (see lock/shared/settle): Redisson takes a third field beside those of a
-- writer for a reader. That note is worth nothing once OWNER:write has left the lock.
-- The hold keys PREFIX:OWNER:rwlock_timeout:N of other readers are not in KEYS: their names are
-- found in the hash, as in Redisson. They lie in its slot. A reader is in while one of them is
-- there. Of a reader of ours the first lasts longest: it alone is prolonged, however many there
-- are. The sorted set sluice_rw_leases:PREFIX has our readers by when their first hold keys end.
-- Redisson does not know it. A reader in it is in until then though its hold key is not there:
-- while a proxy moves keys to another server, those that no script names may be at the other one.
local call = redis.call
local most_entries = 100000  -- that a script looks at, though a field may say anything

local function hold_key(prefix, owner, n)
  return prefix .. ':' .. owner .. ':rwlock_timeout:' .. n
end

local function writing_of(prefix)
  return 'sluice_rw_writing:' .. prefix
end

-- Where the holds of a kind are noted.
local function notes_of(key, prefix, kind)
  return kind == 'r' and key or writing_of(prefix)
end

-- entries, since, owner, holder of a hold of ours; nothing where there is none.
local function hold_of(key, prefix, kind, request)
  -- pcall: a key that became something else must not take other holds with it
  local text = redis.pcall('HGET', notes_of(key, prefix, kind), 'sluice:' .. request)
  if type(text) ~= 'string' then
    return
  end
  local entries, since, owner, holder = string.match(text, '^%a (%d+) (%d+) (%S+) (.*)$')
  if kind == 'r' or redis.pcall('HEXISTS', key, owner .. ':write') == 1 then
    return tonumber(entries), since, owner, holder
  end
end

local function note_hold(key, prefix, kind, request, entries, since, owner, holder)
  call('HSET', notes_of(key, prefix, kind), 'sluice:' .. request,
       table.concat({kind, entries, since, owner, holder}, ' '))
end

local function readers_of(prefix)
  return 'sluice_rw_leases:' .. prefix
end

-- At least so long, if it is there; never shorter.
local function prolong_key(key, ms)
  local left = call('PTTL', key)
  if left > -2 and left < ms then
    call('PEXPIRE', key, ms)
  end
end

-- A lock, and what is noted beside it.
local function prolong_lock(key, prefix, ms)
  prolong_key(key, ms)
  prolong_key(writing_of(prefix), ms)
end

-- Its longest hold ends in so many ms: nothing of it lasts longer.
local function shorten_lock(key, prefix, ms)
  for _, each in ipairs({key, readers_of(prefix), writing_of(prefix)}) do
    call('PEXPIRE', each, ms)
  end
end

local function note_reader(prefix, owner, ms)
  local readers, ends = readers_of(prefix), server_time() + ms
  if ends > tonumber(call('ZSCORE', readers, owner) or 0) then
    call('ZADD', readers, string.format('%.0f', ends), owner)
    prolong_key(readers, ms)
  end
end

-- Makes the entries of an owner last at least so long.
local function prolong(key, prefix, kind, owner, ms)
  if kind == 'r' then
    local name = hold_key(prefix, owner, 1)
    -- PEXPIRE needs no memory, and a server that has none refuses nothing after it.
    if call('PTTL', name) < ms and call('PEXPIRE', name, ms) == 0 then
      call('SET', name, 1, 'PX', ms)
    end
    note_reader(prefix, owner, ms)
  end
  prolong_lock(key, prefix, ms)
end

-- Where the entries of an owner are counted.
local function field_of(kind, owner)
  return kind == 'r' and owner or owner .. ':write'
end

local function enter(key, prefix, kind, owner, many, ms)
  local entries = call('HINCRBY', key, field_of(kind, owner), many)
  if kind == 'r' then
    for n = entries - many + 1, entries do
      call('SET', hold_key(prefix, owner, n), 1, 'PX', ms)
    end
  end
  prolong(key, prefix, kind, owner, ms)
end

-- Ends so many entries of an owner. Returns how long those of a reader lasted, in ms.
local function leave(key, prefix, kind, owner, many)
  local field = field_of(kind, owner)
  local entries = call('HINCRBY', key, field, -many)
  if entries <= 0 then
    call('HDEL', key, field)
  end
  if kind == 'w' then
    return -2
  end
  local left = call('PTTL', hold_key(prefix, owner, 1))
  for n = math.max(entries, 0) + 1, entries + many do
    call('DEL', hold_key(prefix, owner, n))
  end
  if entries <= 0 then
    call('ZREM', readers_of(prefix), owner)
  end
  return left
end

-- part survey
-- How long the entries of a reader last; -2: they are over. One of ours has one that counts.
local function reader_left(owner, entries)
  local left = -2
  for n = 1, math.min(entries, most_entries) do
    left = math.max(left, call('PTTL', hold_key(ARGV[1], owner, n)))
  end
  if left == -2 then
    local ends = tonumber(call('ZSCORE', readers_of(ARGV[1]), owner) or 0)
    left = ends > server_time() and ends - server_time() or -2
  end
  return left
end

-- Forgets the readers whose hold keys have ended: they are dead.
-- Returns how long the longest of the living readers lasts, in ms, nil where there is none; and
-- whether one of them is not ours.
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
    local left = reader_left(owner, ours[owner] and 1 or entries)
    if left == -2 then
      call('HDEL', KEYS[1], owner, unpack(ours[owner] or {}))
    else
      longest = math.max(longest or 1, left)
      foreign = foreign or not ours[owner]
    end
  end
  return longest, foreign
end

-- Of our readers that live, how long the one lasts that lasts longest; nil: there is none.
local function longest_of_ours()
  local readers = readers_of(ARGV[1])
  local owner = call('ZREVRANGE', readers, 0, 0)[1]
  while owner do
    local left = reader_left(owner, 1)
    if left > -2 then
      return left
    end
    call('ZREM', readers, owner)
    owner = call('ZREVRANGE', readers, 0, 0)[1]
  end
end

-- As survey, but in O(log n) where all readers are ours, each in by one request.
local function look_at_readers()
  local longest = longest_of_ours()
  if longest and call('HLEN', KEYS[1]) == 1 + 2 * call('ZCARD', readers_of(ARGV[1])) then
    return math.max(longest, 1), false
  end
  return survey()
end

-- script recount
-- Enter a hold once more, or leave it while entries remain: says how many entries there are from
-- now on.
-- KEYS[1] lock hash, and those beside it
-- ARGV[1] prefix of hold keys   ARGV[2] request id of the hold   ARGV[3] lease, ms
-- ARGV[4] entries   ARGV[5] kind: r or w
-- Reply: 1 done; 0 the hold is gone.
-- include lock/hold/parts.lua server_time
-- include lock/shared/holds.lua holds
local request, lease, entries, kind = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]
local before, since, owner, holder = hold_of(KEYS[1], ARGV[1], kind, request)
if not before then
  return 0
end
if entries > before then
  enter(KEYS[1], ARGV[1], kind, owner, entries - before, lease)
else
  if entries < before then
    leave(KEYS[1], ARGV[1], kind, owner, before - entries)
  end
  prolong(KEYS[1], ARGV[1], kind, owner, lease)
end
note_hold(KEYS[1], ARGV[1], kind, request, entries, since, owner, holder)
return 1

-- part renewal
local function renew(kind)
  local prolonged = {}
  for i = 1, #ARGV / 3 do
    local key = KEYS[4 * i - 3]
    local prefix, request, lease = unpack(ARGV, 3 * i - 2, 3 * i)
    local entries, _, owner = hold_of(key, prefix, kind, request)
    if entries then
      prolong(key, prefix, kind, owner, tonumber(lease))
    end
    prolonged[i] = entries and 1 or 0
  end
  return prolonged
end

-- script renew_read
-- Prolong the holds of many readers.
-- KEYS, four for each hold: lock hash, sluice_rw_writing, sluice_rw_leases, first hold key
-- ARGV, three for each hold: prefix of its hold keys, request id, lease in ms
-- Reply: for each key 1 prolonged, 0 the hold is gone.
-- include lock/hold/parts.lua server_time
-- include lock/shared/holds.lua holds
-- include lock/shared/holds.lua renewal
return renew('r')

-- script renew_write
-- Prolong the holds of many writers.
-- KEYS, ARGV, reply: as renew_read
-- include lock/hold/parts.lua server_time
-- include lock/shared/holds.lua holds
-- include lock/shared/holds.lua renewal
return renew('w')

-- script info
-- The holders and the waiters, for people.
-- KEYS: see lock/shared/settle
-- ARGV[1] prefix of hold keys   ARGV[2] index of the last ticket of each queue to be shown
-- Reply: {server's time in ms, last token or nil, holders, tickets of writers, tickets of readers};
--        of each holder: kind, owner, entries, ms left, and since and holder, or nil for a
--        stranger's.
-- include lock/hold/parts.lua server_time
-- include lock/shared/holds.lua holds
-- include lock/shared/holds.lua survey
-- include lock/hold/parts.lua denied
-- include lock/hold/parts.lua is_lock
local ours = {}
local holders = {}
local fields = is_lock(KEYS[1]) and call('HGETALL', KEYS[1]) or {}

for _, notes in ipairs({fields, call('HGETALL', writing_of(ARGV[1]))}) do
  for i = 2, #notes, 2 do
    local kind, since, owner, holder = string.match(notes[i], '^([rw]) %d+ (%d+) (%S+) (.*)$')
    if kind then
      ours[kind .. owner] = {since, holder}
    end
  end
end
for i = 1, #fields, 2 do
  local entries = tonumber(fields[i + 1])
  if entries then
    local writer = string.match(fields[i], '^(.*):write$')
    local kind, owner = writer and 'w' or 'r', writer or fields[i]
    local known = ours[kind .. owner]
    local left = kind == 'w' and call('PTTL', KEYS[1]) or reader_left(owner, known and 1 or entries)
    if left > -2 then
      known = known or {false, false}
      table.insert(holders, {kind, owner, entries, left, known[1], known[2]})
    end
  end
end
return {server_time(), call('GET', KEYS[2]), holders, call('ZRANGE', KEYS[3], 0, ARGV[2]),
        call('ZRANGE', KEYS[4], 0, ARGV[2])}
