-- part store
-- Which store this is: it changes when a server was started again or took its master's place.
-- Empty: the store does not say so, as the embedded engine, which has its own log.
local function store_now()
  local info = redis.pcall('info', 'replication')
  return type(info) == 'string' and string.match(info, 'master_replid:(%x+)') or ''
end

-- part is_shut
-- Nobody may change the sale: it is being recovered, or its store is another than the one it knows.
-- REQUIRES: part store
local function is_shut(recovering, store)
  return recovering or (store and store ~= store_now())
end

-- part raise_mark
-- How far the sale's database has come: never less far than before. Returns that.
local function raise_mark(sale, mark)
  local known = redis.call('hget', sale, 'mark') or ''
  if mark <= known then return known end
  redis.call('hset', sale, 'mark', mark)
  return mark
end

-- part not_mine
-- Another recovery has begun, or the gate is open.   KEYS[1] sale hash   ARGV[1] token
local function not_mine() return redis.call('hget', KEYS[1], 'recovering') ~= ARGV[1] end

-- script attach
-- Remember which database the sale goes into, unless it goes into one already.
-- KEYS[1] sale hash   KEYS[2] orders stream   KEYS[3] dead letters
-- ARGV[1] the database   ARGV[2] 1: it knows the sale, or may be new
-- ARGV[3] the store that it has the sale from, or ''   ARGV[4] how far it has come
-- ARGV[5] the id of this store, or ''
-- Reply: nil no such sale; else {the database that the sale goes into, 1 when nobody may change it
--        (of an archived one: its database was rolled back),
--        the id of this store, how far the database had come, 1 when the sale is archived}
--        The database is '' where it is not known, and is not this one: orders were brought in; or
--        the sale is sold in another store. In this one nobody buys from it then.
-- include sale/recovery.lua store
-- include sale/recovery.lua is_shut
-- include sale/recovery.lua raise_mark
local sale = redis.call('hmget', KEYS[1], 'capacity', 'database', 'orders', 'recovering', 'store',
                        'archived', 'home', 'rolled_back')
if not sale[1] then return false end
local database, home = sale[2] or '', sale[7] or ARGV[5]
local archived = sale[6] and 1 or 0
if home == '' then return {database, 0, '', '', archived} end
local is_same = string.match(database, '^%S*') == string.match(ARGV[1], '^%S+')
if not sale[7] then redis.call('hset', KEYS[1], 'home', home) end
if ARGV[3] ~= '' and ARGV[3] ~= home then
  if database == '' or is_same then redis.call('hsetnx', KEYS[1], 'recovering', 'fenced') end
  return {database, 1, home, '', archived}
end
if database == '' then
  local waiting = redis.call('xlen', KEYS[2]) + redis.call('xlen', KEYS[3])
  if ARGV[2] == '1' or tonumber(sale[3]) <= waiting then
    database = ARGV[1]
    redis.call('hset', KEYS[1], 'database', database)
    redis.call('hdel', KEYS[1], 'mark')
    is_same = true
  end
end
local shut = sale[8]
if not sale[6] then shut = is_shut(sale[4], sale[5]) end
return {database, shut and 1 or 0, home,
        is_same and raise_mark(KEYS[1], ARGV[4]) or '', archived}

-- script shut
-- Admit nobody until the sale was recovered: its store was lost, and the sale made again.
-- KEYS[1] sale hash   ARGV[1] why   ARGV[2] when it was made, as the caller knows
-- Reply: 1, or 0 when it is shut already, or was recovered since
if redis.call('hget', KEYS[1], 'born') ~= ARGV[2] then return 0 end
return redis.call('hsetnx', KEYS[1], 'recovering', ARGV[1])

-- script shut_behind
-- Admit nobody until the sale was recovered, where it would give numbers that the database has.
-- KEYS[1] sale hash   ARGV[1] day and ARGV[2] place in it of the last number of the database
-- ARGV[3] why
-- Reply: 1, or 0 when the store is not behind, or the gate is shut already
local sale = redis.call('hmget', KEYS[1], 'capacity', 'day', 'taken', 'recovering', 'archived')
if not sale[1] or sale[4] or sale[5] then return 0 end
local day, taken = tonumber(sale[2] or 0) or 0, tonumber(sale[3] or 0) or 0
local their_day = tonumber(ARGV[1])
if day > their_day or day == their_day and taken >= tonumber(ARGV[2]) then return 0 end
redis.call('hset', KEYS[1], 'recovering', ARGV[3])
return 1

-- script needs_recovery
-- KEYS[1] sale hash   KEYS[2] which recovery is under way
-- Reply: 1 when the gate is shut for want of one, or the sale is lost, and nobody sees to it;
--        2 when a bucket's share alone is not known, or no units move; or 0
--        A recovery that began before the store was started again cannot open the gate: it counts
--        as none, so that the next one need not wait until its mark has expired.
-- include sale/recovery.lua store
-- include sale/recovery.lua is_shut
local sale = redis.call('hmget', KEYS[1], 'capacity', 'recovering', 'store', 'archived', 'bucket',
                        'moves', 'frozen')
if sale[1] and (sale[4] or not is_shut(sale[2], sale[3])) then
  return sale[5] and (not sale[6] or sale[7]) and not sale[4] and 2 or 0
end
local under_way = redis.call('get', KEYS[2])
if not under_way then return 1 end
local began_in = string.match(under_way, ' (%x+)$')
return began_in and began_in ~= store_now() and 1 or 0

-- script drop_recovery
-- It has failed, and opens no gate: another one may begin.
-- KEYS[1] which recovery is under way   ARGV[1] its token
local under_way = redis.call('get', KEYS[1])
if under_way and string.match(under_way, '^%S+') == ARGV[1] then redis.call('del', KEYS[1]) end
return false

-- script begin_recovery
-- Admit nobody from now on; make the sale again if it is lost. The mark lives for 20 s, and is
-- renewed while the recovery goes on: so long one that was killed at it holds up the next.
-- KEYS[1] sale hash   KEYS[2] orders stream   KEYS[3] which recovery is under way
-- ARGV[1] consumer group   ARGV[2] token of this recovery   ARGV[3] how many pairs always count
-- ARGV[4] the sale's epoch, as the caller knows; empty: it has none
-- then pairs: field, value; the others count for a lost sale
-- Reply: {which store this is, 1 when the sale was lost, its capacity, changes, epoch, closed}
--        nil: a recovery has ended since
-- include sale/recovery.lua store
if (redis.call('hget', KEYS[1], 'epoch') or '') ~= ARGV[4] then return false end
local lost = redis.call('exists', KEYS[1]) == 0
if lost then
  redis.call('hset', KEYS[1], 'sold', 0, 'orders', 0, unpack(ARGV, 5))
elseif tonumber(ARGV[3]) > 0 then
  redis.call('hset', KEYS[1], unpack(ARGV, 5, 4 + 2 * ARGV[3]))
end
local begun = redis.call('hget', KEYS[1], 'begun') or ''
redis.call('hset', KEYS[1], 'recovering', ARGV[2], 'begun',
           string.sub(ARGV[2] .. ' ' .. begun, 1, 131))
redis.call('hdel', KEYS[1], 'moves', 'mark')  -- of a bucket: its share may be lost
redis.call('set', KEYS[3], ARGV[2] .. ' ' .. store_now(), 'PX', 20000)
-- include sale/sale.lua group
local there = redis.call('hmget', KEYS[1], 'capacity', 'changes', 'epoch', 'closed')
return {store_now(), lost and 1 or 0, there[1] or '0', there[2] or '0', there[3] or '0',
        there[4] or ''}

-- script send_again
-- Send orders on their way that the store knows and that are on no way.
-- KEYS[1] sale hash   KEYS[2] orders stream   ARGV[1] token
-- then two for each order: order, buyer
-- Reply: 1; 0 another recovery has begun
-- include sale/recovery.lua not_mine
if not_mine() then return 0 end
for at = 2, #ARGV, 2 do
  redis.call('xadd', KEYS[2], '*', 'order', ARGV[at], 'buyer', ARGV[at + 1])
end
return 1

-- script recount
-- Correct what is counted for buyers.
-- KEYS[1] sale hash   KEYS[2] buyers hash   ARGV[1] token   then two for each: buyer, "live units"
-- Reply: 1; 0 another recovery has begun
-- include sale/recovery.lua not_mine
if not_mine() then return 0 end
for at = 2, #ARGV, 2 do
  local record = redis.call('hget', KEYS[2], ARGV[at])
  redis.call('hset', KEYS[2], ARGV[at],
             ARGV[at + 1] .. string.match(record, '^%d+ %d+( .+)$'))
end
return 1

-- script set_returned
-- KEYS[1] sale hash   KEYS[2] returned hash   ARGV[1] token   then two for each: return, its units;
-- empty: it is of no order that ended
-- Reply: how many were not there; -1 another recovery has begun
-- include sale/recovery.lua not_mine
if not_mine() then return -1 end
local new = 0
for at = 2, #ARGV, 2 do
  if ARGV[at + 1] == '' then redis.call('hdel', KEYS[2], ARGV[at])
  else new = new + redis.call('hset', KEYS[2], ARGV[at], ARGV[at + 1]) end
end
return new

-- script end_recovery
-- Let buyers in again, with counters that were made anew.
-- KEYS[1] sale hash   KEYS[2] which recovery is under way
-- ARGV[1] token of this recovery   ARGV[2] which store this was
-- then pairs: field, value
-- Reply: 1; 0 another recovery has begun; -1 the store has changed again
-- include sale/recovery.lua store
-- include sale/recovery.lua not_mine
if not_mine() then return 0 end
if store_now() ~= ARGV[2] then return -1 end
redis.call('del', KEYS[2])
redis.call('hdel', KEYS[1], 'last', 'day', 'taken', 'second', 'sequence', 'refused', 'store',
           'recovering')
redis.call('hset', KEYS[1], unpack(ARGV, 3))
if ARGV[2] ~= '' then redis.call('hset', KEYS[1], 'store', ARGV[2]) end
return 1

-- script raise_epoch
-- Count a recovery that the database alone has counted: another one overtook it, and opened the
-- gate.
-- KEYS[1] sale hash   ARGV[1] the database's epoch   ARGV[2] the recovery that began it
-- Reply: 1; 0 the gate is shut, and who opens it will tell
--        -1 it began in a copy of this store: nobody buys here from now on
-- include sale/recovery.lua store
-- include sale/recovery.lua is_shut
local sale = redis.call('hmget', KEYS[1], 'recovering', 'store', 'epoch', 'begun')
if is_shut(sale[1], sale[2]) then return 0 end
if tonumber(sale[3] or 0) >= tonumber(ARGV[1]) then return 1 end
if ARGV[2] ~= '' and not string.find(sale[4] or '', ARGV[2], 1, true) then
  redis.call('hset', KEYS[1], 'recovering', 'fenced')
  return -1
end
redis.call('hset', KEYS[1], 'epoch', ARGV[1])
return 1

-- script raise_lanes
-- Goes on while its slot moves: it has one key, and leaves it there.
-- KEYS[1] how many sales the store has made   ARGV[1] the lane of one of them
if tonumber(redis.call('get', KEYS[1]) or 0) < tonumber(ARGV[1]) then
  redis.call('set', KEYS[1], ARGV[1])
end
return false
