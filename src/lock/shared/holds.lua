-- What stands in the hash of a read-write lock. Redisson's are "mode", and for each owner OWNER or
-- OWNER:write with the number of its entries. Ours are, for each hold of ours,
--   sluice:REQUEST = "KIND ENTRIES SINCE OWNER HOLDER"   KIND r or w; SINCE by the server's time, ms
-- and sluice:turn (see lock/shared/settle). No value of ours may look like a number: Redisson's
-- read release counts down from whatever does.
-- A reader's hold keys PREFIX:OWNER:rwlock_timeout:N are not in KEYS: as in Redisson, whoever
-- releases finds their names in the hash. They lie in its slot.
local call = redis.call

local function hold_key(prefix, owner, n)
  return prefix .. ':' .. owner .. ':rwlock_timeout:' .. n
end

-- kind, entries, since, owner, holder of a hold of ours; nothing where there is none.
local function hold_of(key, request)
  -- pcall: a key that became something else must not take other holds with it
  local text = redis.pcall('HGET', key, 'sluice:' .. request)
  if type(text) == 'string' then
    local kind, entries, since, owner, holder =
      string.match(text, '^(%a) (%d+) (%d+) (%S+) (.*)$')
    return kind, tonumber(entries), since, owner, holder
  end
end

local function note_hold(key, request, kind, entries, since, owner, holder)
  call('HSET', key, 'sluice:' .. request,
       table.concat({kind, entries, since, owner, holder}, ' '))
end

-- At least so long; never shorter.
local function prolong_key(key, ms)
  if call('PTTL', key) < ms then
    call('PEXPIRE', key, ms)
  end
end

-- Makes all entries of an owner last at least so long.
local function prolong(key, prefix, kind, owner, ms)
  if kind == 'r' then
    for n = 1, tonumber(call('HGET', key, owner)) or 0 do
      if call('PTTL', hold_key(prefix, owner, n)) < ms then
        call('SET', hold_key(prefix, owner, n), 1, 'PX', ms)
      end
    end
  end
  prolong_key(key, ms)
end

local function enter(key, prefix, kind, owner, many, ms)
  if kind == 'r' then
    local entries = call('HINCRBY', key, owner, many)
    for n = entries - many + 1, entries do
      call('SET', hold_key(prefix, owner, n), 1, 'PX', ms)
    end
  else
    call('HINCRBY', key, owner .. ':write', many)
  end
  prolong_key(key, ms)
end

-- Ends so many entries of an owner. Which hold key is whose nobody can tell where an owner is in by
-- several requests: those that stay last as long as the longest did, which is returned.
local function leave(key, prefix, kind, owner, many)
  local field = kind == 'r' and owner or owner .. ':write'
  local entries = call('HINCRBY', key, field, -many)
  if entries <= 0 then
    call('HDEL', key, field)
  end
  local longest = -2
  if kind == 'r' then
    for n = 1, entries + many do
      longest = math.max(longest, call('PTTL', hold_key(prefix, owner, n)))
    end
    for n = math.max(entries, 0) + 1, entries + many do
      call('DEL', hold_key(prefix, owner, n))
    end
    if entries > 0 and longest > 0 then
      prolong(key, prefix, kind, owner, longest)
    end
  end
  return longest
end
