-- The scripts of SharedBloomFilter.
-- KEYS[1] config hash
-- In all but create and begin:
-- ARGV[1] to ARGV[5] the definition that the caller knows: size, hashIterations, sluice:links,
--   sluice:id, sluice:next; empty: there is no such field
-- Reply where the definition is another: it, as an array; where a link is missing: {n, its key}.

-- part changed
local call = redis.call

-- Of a script that has not written yet.
local function wrong_type(text)
  return redis.error_reply(text .. '; nothing was written')
end
local function is_wrong_type(answer)
  return type(answer) == 'table' and answer.err and string.find(answer.err, '^WRONGTYPE')
end

-- The definition as it stands, if it is not the one that the caller knows; an error where there can
-- be none.
local function changed()
  local now = redis.pcall('HMGET', KEYS[1], 'size', 'hashIterations', 'sluice:links',
                          'sluice:id', 'sluice:next')
  if now.err then
    return is_wrong_type(now) and wrong_type(now.err) or now
  end
  for i = 1, 5 do
    if (now[i] or '') ~= ARGV[i] then
      return now
    end
  end
end

-- part strings
-- An error if one of the keys from `first` on holds no string. A user who may not look is not
-- refused: the bits are what is needed.
local function no_string(first)
  for key = first, #KEYS do
    local bit = redis.pcall('GETBIT', KEYS[key], 0)
    if is_wrong_type(bit) then
      return wrong_type(bit.err)
    end
  end
end

-- part whole
-- The first link that the definition names and that is not there, {its number, its key}: KEYS from
-- `first` on, each `step`-th. Legal is only a first link that nobody has added to: Redisson makes
-- it with the first key, we with the filter, and note that in the field sluice:bits. A user who may
-- not look is not refused.
local function missing(config, first, step)
  local links = math.floor((#KEYS - first) / step) + 1
  for link = 1, links do
    local key = KEYS[first + (link - 1) * step]
    if redis.pcall('EXISTS', key) == 0
       and (links > 1 or call('HGET', config, 'sluice:bits')
            or tonumber(call('HGET', config, 'sluice:count') or 0) ~= 0) then
      return {link, key}
    end
  end
end

-- part vacant
local function no_filter(key)
  return redis.error_reply("WRONGTYPE '" .. key .. "' is there, and no Bloom filter: one was " ..
                           'lost in part, or it is something else: give the filter another ' ..
                           'name, or delete the key; nothing was written')
end

-- Whether there is a filter; and an error where one would be made over something else.
local function look(config, bits)
  local size = redis.pcall('HGET', config, 'size')
  if type(size) == 'table' then
    return false, redis.error_reply(size.err .. '; nothing was written')
  elseif size then
    return true
  end
  for _, key in ipairs({config, bits}) do
    if redis.call('EXISTS', key) == 1 then
      return false, no_filter(key)
    end
  end
  return false
end

-- part indexes
-- KEYS[2] and on are the bits of the links, the oldest first. From `first` on ARGV has how many
-- hashes each link has, and then for each link the indexes of all keys.
local links, args = #KEYS - 1, ARGV  -- a global name costs a look-up each time
local hashes, from = {}, {}
local function find_indexes(first, keys)
  local at = first + links
  for link = 1, links do
    hashes[link] = tonumber(ARGV[first + link - 1])
    from[link] = at
    at = at + keys * hashes[link]
  end
end

-- Whether a link has a key, from 0.
local function has(link, key)
  local bits, first = KEYS[1 + link], from[link] + key * hashes[link]
  for i = first, first + hashes[link] - 1 do
    if call('GETBIT', bits, args[i]) == 0 then
      return false
    end
  end
  return true
end

-- Whether one of the links has it, the newest first, which has the most.
local function is_in(newest, key)
  for link = newest, 1, -1 do
    if has(link, key) then
      return true
    end
  end
  return false
end

-- part define
-- The fields of a filter; `ARGV` from `first`: size, hashIterations, expectedInsertions,
-- falseProbability, sluice:links (empty: none), sluice:count.
local function define(config, first)
  redis.call('HSET', config, 'size', ARGV[first], 'hashIterations', ARGV[first + 1],
             'expectedInsertions', ARGV[first + 2], 'falseProbability', ARGV[first + 3],
             'sluice:bits', '1')
  if ARGV[first + 4] ~= '' then
    redis.call('HSET', config, 'sluice:links', ARGV[first + 4], 'sluice:count',
               ARGV[first + 5])
  end
end

-- script create
-- Create a filter.
-- KEYS[2] bits   KEYS[3] config of a rebuild   KEYS[4] and on: all links that a chain may have
-- ARGV[1] to ARGV[6] see define   ARGV[7] channel
-- Reply: 1 created; 0 there is one.
-- include bloom/shared/shared.lua vacant
local is_there, refused = look(KEYS[1], KEYS[2])
if is_there or refused then
  return refused or 0
end
local rebuild = redis.call('HGET', KEYS[3], 'sluice:id')
for link = 4, #KEYS do
  redis.call('STRLEN', KEYS[link])  -- or WRONGTYPE, before anything is written
end
redis.call('UNLINK', unpack(KEYS, 4))  -- of a chain that a Java program has deleted
-- include bloom/shared/shared.lua define
define(KEYS[1], 1)
redis.call('SETBIT', KEYS[2], 0, 0)
if rebuild then
  redis.call('HSET', KEYS[1], 'sluice:next', rebuild)
  redis.call('HSET', KEYS[3], 'sluice:replaces', '1')
end
redis.pcall('PUBLISH', ARGV[7], '')
return 1

-- script contains
-- Goes on while its slot moves: it only reads.
-- ARGV[6] how many keys; 0: only see whether all links are there   ARGV[7] and on see indexes
-- Reply: a text of as many 0 and 1.
-- include bloom/shared/shared.lua changed
-- include bloom/shared/shared.lua whole
-- include bloom/shared/shared.lua indexes
local now = changed()
if now then
  return now
end
local keys = tonumber(ARGV[6])
find_indexes(7, keys)
local answers, all = {}, keys > 0
for key = 0, keys - 1 do
  local found = is_in(links, key)
  answers[key + 1] = found and '1' or '0'
  all = all and found
end
return not all and missing(KEYS[1], 2, 1) or table.concat(answers)

-- script add
-- ARGV[6] how many keys   ARGV[7] how many the newest link is for; 0: it takes all
-- ARGV[8] channel   ARGV[9] the keys as subscribers want them, 16 bytes each; empty: tell none
-- ARGV[10] lease of a rebuild that goes on, ms; 0: none   ARGV[11] and on see indexes
-- Reply: a text of as many 0 and 1 (new); it is shorter where the newest link was full before.
-- include bloom/shared/shared.lua changed
-- include bloom/shared/shared.lua whole
-- include bloom/shared/shared.lua strings
-- include bloom/shared/shared.lua indexes
local now = changed() or no_string(2) or missing(KEYS[1], 2, 1)
if now then
  return now
end
local keys, capacity = tonumber(ARGV[6]), tonumber(ARGV[7])
find_indexes(11, keys)
local free = math.huge
if capacity > 0 then
  local count = call('HGET', KEYS[1], 'sluice:count') or '0'
  if not string.match(count, '^%d+$') or #count > 15 then
    return wrong_type('WRONGTYPE sluice:count of a Bloom filter is no count')
  end
  free = capacity - count
end
local newest = KEYS[1 + links]
local answers, news = {}, {}
for key = 0, keys - 1 do
  local answer = '0'
  if not is_in(links - 1, key) then
    if #news >= free and not has(links, key) then
      break
    end
    local first = from[links] + key * hashes[links]
    for i = first, first + hashes[links] - 1 do
      if call('SETBIT', newest, args[i], '1') == 0 then
        answer = '1'
      end
    end
    if answer == '1' then
      news[#news + 1] = string.sub(ARGV[9], 16 * key + 1, 16 * key + 16)
    end
  end
  answers[key + 1] = answer
end
if capacity > 0 and #news > 0 then
  call('HINCRBY', KEYS[1], 'sluice:count', #news)
end
local ttl = tonumber(ARGV[10])
if ttl == 0 and #news > 0 then
  ttl = redis.pcall('PTTL', KEYS[1])
end
if type(ttl) == 'number' and ttl > 0 then  -- Java lets the config and the first link end alone
  for key = ARGV[10] ~= '0' and 1 or 2, #KEYS do
    call('PEXPIRE', KEYS[key], ttl)
  end
end
if ARGV[9] ~= '' and #news > 0 then
  redis.pcall('PUBLISH', ARGV[8], table.concat(news))  -- a user who may not is no reason to fail
end
return table.concat(answers)

-- script grow
-- Give a chain another link.
-- KEYS[2] bits of the link   ARGV[6] sluice:links with it
-- Reply: the definition that is in force now.
-- include bloom/shared/shared.lua changed
-- include bloom/shared/shared.lua strings
local now = changed() or no_string(2)
if now then
  return now
end
call('UNLINK', KEYS[2])
call('SETBIT', KEYS[2], 0, 0)
local ttl = call('PTTL', KEYS[1])
if ttl > 0 then
  call('PEXPIRE', KEYS[2], ttl)
end
call('HSET', KEYS[1], 'sluice:links', ARGV[6], 'sluice:count', '0')
return {ARGV[1], ARGV[2], ARGV[6], ARGV[4], ARGV[5]}

-- script merge
-- Add the bits of another filter.
-- KEYS[2] its config   KEYS[3] config of the rebuild   KEYS[4] and on: a link, and the other's
-- ARGV[6] size   ARGV[7] hashIterations   ARGV[8] sluice:links of the other
-- ARGV[9] 1: count the newest link anew   ARGV[10] channel
-- Reply: 1 done; 0 a rebuild is under way; -1 the other one is another now.
-- include bloom/shared/shared.lua changed
-- include bloom/shared/shared.lua whole
-- include bloom/shared/shared.lua strings
local now = changed() or no_string(4)
if now then
  return now
end
now = missing(KEYS[1], 4, 2) or missing(KEYS[2], 5, 2)
if now then
  return now
end
local other = call('HMGET', KEYS[2], 'size', 'hashIterations', 'sluice:links')
if other[1] ~= ARGV[6] or other[2] ~= ARGV[7] or (other[3] or '') ~= ARGV[8] then
  return -1
end
if ARGV[5] ~= '' and call('EXISTS', KEYS[3]) == 1 then
  return 0
end
local ttl = call('PTTL', KEYS[1])
for link = 4, #KEYS, 2 do
  call('BITOP', 'OR', KEYS[link], KEYS[link], KEYS[link + 1])
  if ttl > 0 then
    call('PEXPIRE', KEYS[link], ttl)  -- BITOP has made it new
  end
end
if ARGV[9] == '1' then
  local bits, hashes = string.match(ARGV[3], '(%d+) (%d+) %d+$')
  local set = math.min(call('BITCOUNT', KEYS[#KEYS - 1]), bits - 1)
  local keys = -bits / hashes * math.log(1 - set / bits)
  call('HSET', KEYS[1], 'sluice:count', string.format('%.0f', keys))
end
redis.pcall('PUBLISH', ARGV[10], '')
return 1

-- script remove
-- KEYS[2], KEYS[3] config and bits of a rebuild   KEYS[4] and on: the links   ARGV[6] channel
-- Reply: 1.
-- include bloom/shared/shared.lua changed
-- include bloom/shared/shared.lua strings
local now = changed() or no_string(4)
if now then
  return now
end
call('UNLINK', KEYS[1], unpack(KEYS, 4))
if type(redis.pcall('HGET', KEYS[2], 'sluice:id')) == 'string' then
  call('UNLINK', KEYS[2], KEYS[3])
end
redis.pcall('PUBLISH', ARGV[6], '')
return 1

-- script expire
-- KEYS[2] and on: the links   ARGV[6] ms; 0: never
-- Reply: 1.
-- include bloom/shared/shared.lua changed
-- include bloom/shared/shared.lua whole
-- include bloom/shared/shared.lua strings
local now = changed() or no_string(2) or missing(KEYS[1], 2, 1)
if now then
  return now
end
for link = 2, #KEYS do
  if call('EXISTS', KEYS[link]) == 0 then
    call('SETBIT', KEYS[link], 0, 0)  -- else its first bit would make a key that never ends
  end
end
for _, key in ipairs(KEYS) do
  if ARGV[6] == '0' then
    call('PERSIST', key)
  else
    call('PEXPIRE', key, ARGV[6])
  end
end
return 1

-- script rename
-- KEYS[2] the other config   KEYS[3] config of the rebuild   KEYS[4] and on: a link, and its other
--   name
-- ARGV[6], ARGV[7] channels of both
-- Reply: 1 done; 0 there is something of that name; -1 a rebuild is under way.
-- include bloom/shared/shared.lua changed
-- include bloom/shared/shared.lua whole
-- include bloom/shared/shared.lua strings
local now = changed() or missing(KEYS[1], 4, 2)
if now then
  return now
end
local taken = call('EXISTS', KEYS[2])
for link = 5, #KEYS, 2 do
  taken = taken + call('EXISTS', KEYS[link])
end
if taken > 0 then
  return 0
end
local foreign = no_string(4)
if foreign then
  return foreign
end
if ARGV[5] ~= '' and call('EXISTS', KEYS[3]) == 1 then
  return -1
end
call('HDEL', KEYS[1], 'sluice:next')
call('RENAME', KEYS[1], KEYS[2])
for link = 4, #KEYS, 2 do
  if call('EXISTS', KEYS[link]) == 1 then
    call('RENAME', KEYS[link], KEYS[link + 1])
  end
end
redis.pcall('PUBLISH', ARGV[6], '')
redis.pcall('PUBLISH', ARGV[7], '')
return 1

-- script begin
-- Begin a rebuild.
-- KEYS[2] its config   KEYS[3] bits of the filter   KEYS[4] and on: its links
-- ARGV[1] to ARGV[6] see define   ARGV[7] its id
-- ARGV[8] lease, ms   ARGV[9] 1: programs are to add to both filters
-- Reply: 1 begun; 0 another is under way.
local call = redis.call
-- include bloom/shared/shared.lua vacant
local is_there, refused = look(KEYS[1], KEYS[3])
local is_under_way, next_refused = look(KEYS[2])
for link = 4, #KEYS do
  if not is_under_way and call('PTTL', KEYS[link]) == -1 then  -- those of a rebuild end
    next_refused = no_filter(KEYS[link])
  end
end
if is_under_way or refused or next_refused then
  return refused or next_refused or 0
end
-- include bloom/shared/shared.lua define
define(KEYS[2], 1)
call('HSET', KEYS[2], 'sluice:id', ARGV[7])
call('PEXPIRE', KEYS[2], ARGV[8])
for link = 4, #KEYS do
  call('SET', KEYS[link], '', 'PX', ARGV[8])
end
if ARGV[9] == '1' and is_there then
  call('HSET', KEYS[1], 'sluice:next', ARGV[7])
  call('HSET', KEYS[2], 'sluice:replaces', '1')
end
return 1

-- script fill
-- Write a part of the bits of a rebuild.
-- KEYS[1] its config   KEYS[2] a link   ARGV[6] offset   ARGV[7] bytes   ARGV[8] lease, ms
-- Reply: 1.
-- include bloom/shared/shared.lua changed
-- include bloom/shared/shared.lua strings
local now = changed() or no_string(2)
if now then
  return now
end
call('SETRANGE', KEYS[2], ARGV[6], ARGV[7])
call('PEXPIRE', KEYS[1], ARGV[8])
call('PEXPIRE', KEYS[2], ARGV[8])
return 1

-- script finish
-- Put a rebuild into the place of the filter.
-- KEYS[2] its config   KEYS[3] and on: links of the filter, at least as many as
--   the rebuild has, then those of the rebuild
-- ARGV[6] id of the rebuild   ARGV[7] its sluice:links   ARGV[8] how many links of the filter
-- ARGV[9] channel
-- Reply: 1 done; 0 the rebuild was given up; -1 the filter that it was to replace is gone.
-- include bloom/shared/shared.lua changed
-- include bloom/shared/shared.lua strings
local now = changed() or no_string(3)
if now then
  return now
end
local rebuilt = call('HMGET', KEYS[2], 'sluice:id', 'sluice:links', 'sluice:replaces')
if rebuilt[1] ~= ARGV[6] or (rebuilt[2] or '') ~= ARGV[7] then
  return 0
end
if rebuilt[3] and ARGV[1] == '' then
  return -1  -- it has expired: what is to end must not come back for ever
end
local last = 2 + ARGV[8]
for link = last + 1, #KEYS do
  if call('EXISTS', KEYS[link]) == 0 then
    return 0  -- a server that is full has evicted it
  end
end
local ttl = call('PTTL', KEYS[1])
for link = 3, last do
  call('UNLINK', KEYS[link])
end
call('RENAME', KEYS[2], KEYS[1])
call('HDEL', KEYS[1], 'sluice:replaces')
call('PERSIST', KEYS[1])
if ttl > 0 then
  call('PEXPIRE', KEYS[1], ttl)
end
for link = last + 1, #KEYS do
  local place = KEYS[link - last + 2]
  call('RENAME', KEYS[link], place)
  call('PERSIST', place)
  if ttl > 0 then
    call('PEXPIRE', place, ttl)
  end
end
redis.pcall('PUBLISH', ARGV[9], '')
return 1

-- script give_up
-- End a rebuild that will not be finished.
-- KEYS[2] its config   ARGV[1] its id   KEYS[3] and on: its links   ARGV[2] 1: only where it has
--   ended by itself
-- Reply: 1.
local call = redis.call
local is_its_own = call('HGET', KEYS[2], 'sluice:id') == ARGV[1]
if ARGV[2] == '1' and is_its_own then
  return 1
end
if call('HGET', KEYS[1], 'sluice:next') == ARGV[1] then
  call('HDEL', KEYS[1], 'sluice:next')
end
if is_its_own then
  for key = 2, #KEYS do
    call('UNLINK', KEYS[key])
  end
end
return 1
