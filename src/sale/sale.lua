-- part group
-- Make the group of the workers, unless it is there. KEYS[2] orders stream   ARGV[1] group
local made = redis.pcall('xgroup', 'create', KEYS[2], ARGV[1], 0, 'mkstream')
if made.err and not string.find(made.err, 'BUSYGROUP', 1, true) then return made end

-- script create
-- Define a sale, unless it is there already.
-- KEYS[1] sale hash   KEYS[2] orders stream   KEYS[3] dead letters   KEYS[4..] the hashes of orders
-- ARGV[1] consumer group, then pairs: field, value
-- Reply: nil
-- include sale/recovery.lua store
if redis.call('hexists', KEYS[1], 'capacity') == 1 then return false end
redis.call('get', KEYS[1])  -- this and the next raise WRONGTYPE for a key of something else
for i = 2, #KEYS do redis.call(i < 4 and 'xlen' or 'hlen', KEYS[i]) end
local time, store = redis.call('time'), store_now()
redis.call('hset', KEYS[1], 'sold', 0, 'orders', 0, 'born',
           string.format('%.0f', time[1] * 1000000 + time[2]), unpack(ARGV, 2))
if store ~= '' then redis.call('hset', KEYS[1], 'store', store) end
-- include sale/sale.lua group
return false

-- script claim_type
-- Note whose numbers have a type, unless that has changed.
-- Goes on while its slot moves: it has one key, and leaves it there.
-- KEYS[1] types   ARGV[1] type   ARGV[2] name of the sale   ARGV[3] whose it was; empty: nobody's
-- Reply: 1, or 0 when it is another's now
if (redis.call('hget', KEYS[1], ARGV[1]) or '') ~= ARGV[3] then return 0 end
redis.call('hset', KEYS[1], ARGV[1], ARGV[2])
return 1

-- script join
-- Give a stream that was lost alone its group back.
-- KEYS[1] sale hash   KEYS[2] orders stream   ARGV[1] consumer group
-- Reply: nil
if redis.call('hexists', KEYS[1], 'archived') == 1 then return false end
-- include sale/sale.lua group
return false

-- script archive
-- Mark a sale as archived, once no order is on its way: its other keys may be deleted then.
-- KEYS[1] sale hash   KEYS[2] orders stream   KEYS[3] dead letters   KEYS[4..] the hashes of orders
-- ARGV[1] when
-- Reply: how many of those hashes are there; nil when orders are on their way, or the sale is open
local sale = redis.call('hmget', KEYS[1], 'closed', 'archived')
if not sale[2] then
  if not sale[1] or redis.call('xlen', KEYS[2]) + redis.call('xlen', KEYS[3]) > 0 then
    return false
  end
  redis.call('hset', KEYS[1], 'archived', ARGV[1])
end
redis.call('del', KEYS[2], KEYS[3])
return redis.call('exists', unpack(KEYS, 4))

-- script close
-- End a sale for good.
-- KEYS[1] sale hash
-- Reply: 1, or 0 when there is no such sale
if redis.call('hexists', KEYS[1], 'capacity') == 0 then return 0 end
redis.call('hset', KEYS[1], 'closed', 1)
return 1
