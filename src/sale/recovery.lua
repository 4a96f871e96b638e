-- part store
-- Which store this is: it changes when a server was started again or took its master's place.
-- Empty: the store does not say so, as the embedded engine, which has its own log.
local function store_now()
  local info = redis.pcall('info', 'replication')
  return type(info) == 'string' and string.match(info, 'master_replid:(%x+)') or ''
end

-- script shut
-- Admit nobody until the sale was recovered: its store was lost, and the sale made again.
-- KEYS[1] sale hash   ARGV[1] why
-- Reply: 1, or 0 when it is shut already
return redis.call('hsetnx', KEYS[1], 'recovering', ARGV[1])

-- script begin_recovery
-- Admit nobody from now on; make the sale again if it is lost.
-- KEYS[1] sale hash   KEYS[2] orders stream
-- ARGV[1] consumer group   ARGV[2] token of this recovery   ARGV[3] how many pairs always count
-- then pairs: field, value; the others count for a lost sale
-- Reply: {which store this is, 1 when the sale was lost}
-- include sale/recovery.lua store
local lost = redis.call('exists', KEYS[1]) == 0
if lost then
  redis.call('hset', KEYS[1], 'sold', 0, 'orders', 0, unpack(ARGV, 4))
elseif tonumber(ARGV[3]) > 0 then
  redis.call('hset', KEYS[1], unpack(ARGV, 4, 3 + 2 * ARGV[3]))
end
redis.call('hset', KEYS[1], 'recovering', ARGV[2])
-- include sale/sale.lua group
return {store_now(), lost and 1 or 0}

-- script restock
-- Bring the stock to where the database has it, if changes of it are lost.
-- KEYS[1] sale hash   ARGV[1] the last change   ARGV[2] the stock after it
if tonumber(redis.call('hget', KEYS[1], 'changes') or 0) < tonumber(ARGV[1]) then
  redis.call('hset', KEYS[1], 'changes', ARGV[1], 'capacity', ARGV[2])
end
return false

-- script send_again
-- Send orders on their way that the store knows and that are on no way.
-- KEYS[1] orders stream   ARGV: two for each order: order, buyer
for at = 1, #ARGV, 2 do
  redis.call('xadd', KEYS[1], '*', 'order', ARGV[at], 'buyer', ARGV[at + 1])
end
return false

-- script end_recovery
-- Let buyers in again.
-- KEYS[1] sale hash   ARGV[1] token of this recovery   ARGV[2] which store this was
-- ARGV[3] epoch   ARGV[4] units given back when the orders were counted
-- ARGV[5] units of the orders that stand   ARGV[6] orders   ARGV[7] gaps in their numbers
-- Reply: 1; 0 another recovery has begun; -1 the store has changed again; -2 count once more
-- include sale/recovery.lua store
local sale = redis.call('hmget', KEYS[1], 'recovering', 'given_back')
if sale[1] ~= ARGV[1] then return 0 end
if store_now() ~= ARGV[2] then return -1 end
if (sale[2] or '0') ~= ARGV[4] then return -2 end
redis.call('hset', KEYS[1], 'epoch', ARGV[3], 'sold', ARGV[5], 'orders', ARGV[6],
           'gaps', ARGV[7])
if ARGV[2] ~= '' then redis.call('hset', KEYS[1], 'store', ARGV[2]) end
redis.call('hdel', KEYS[1], 'recovering')
return 1

-- script raise_lanes
-- KEYS[1] how many sales the store has made   ARGV[1] the lane of one of them
if tonumber(redis.call('get', KEYS[1]) or 0) < tonumber(ARGV[1]) then
  redis.call('set', KEYS[1], ARGV[1])
end
return false
