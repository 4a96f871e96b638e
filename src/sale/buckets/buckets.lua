-- Shares of the buckets of a sale, and units that move between them. In a bucket's sale hash:
--   capacity   its share: units that were sold here, and that may be
--   moves      a word that all buckets have: units move between buckets of one word alone, and each
--              recovery of a share makes a new one. None: the share is not known.
--   frozen     the word of a recovery of shares that is under way, or died: no units move
--   out:R      "n units": the latest transfer to bucket R, its n-th
--   in:D       n of the latest transfer that came from bucket D
-- A transfer is under way as long as the donor's n is above the receiver's.

-- script look
-- KEYS[1] sale hash of a bucket
-- Reply: nil no such bucket; else {1 when it has to be recovered, field, value, ...}
-- include sale/recovery.lua store
-- include sale/recovery.lua is_shut
local sale = redis.call('hmget', KEYS[1], 'capacity', 'recovering', 'store')
if not sale[1] then return false end
return {is_shut(sale[2], sale[3]) and 1 or 0, unpack(redis.call('hgetall', KEYS[1]))}

-- part is_still
-- No units move from or to this bucket now.
-- REQUIRES: recovery.lua's store and is_shut   KEYS[1] sale hash
local function is_still(word)
  local sale = redis.call('hmget', KEYS[1], 'moves', 'frozen', 'recovering', 'store', 'archived')
  return sale[1] ~= word or sale[2] or is_shut(sale[3], sale[4]) or sale[5]
end

-- script give
-- Take units out of a donor's share, for another bucket: half of what is left, or more if asked.
-- One transfer at a time is under way between two buckets: where there is one, it is that one.
-- KEYS[1] the donor's sale hash   ARGV[1] word of the moves   ARGV[2] index of the receiver
-- ARGV[3] units that it needs   ARGV[4] n of the latest transfer that it is known to have
-- Reply: {n, units}; {0, 0} nothing is left here; {-1, 0} no units move now
-- include sale/recovery.lua store
-- include sale/recovery.lua is_shut
-- include sale/buckets/buckets.lua is_still
if is_still(ARGV[1]) then return {-1, 0} end
local out = 'out:' .. ARGV[2]
local sale = redis.call('hmget', KEYS[1], 'capacity', 'sold', out)
local n, under_way = string.match(sale[3] or '', '^(%d+) (%d+)$')
if n and tonumber(n) > tonumber(ARGV[4]) then return {tonumber(n), tonumber(under_way)} end
local left = sale[1] - sale[2]
if left <= 0 then return {0, 0} end
local units = math.min(left, math.max(tonumber(ARGV[3]), math.ceil(left / 2)))
n = math.max(tonumber(n or 0), tonumber(ARGV[4])) + 1
redis.call('hset', KEYS[1], 'capacity', string.format('%.0f', sale[1] - units),
           out, string.format('%.0f %.0f', n, units))
return {n, units}

-- script take
-- Add the units of a transfer to the receiver's share, once.
-- KEYS[1] the receiver's sale hash   ARGV[1] word of the moves   ARGV[2] index of the donor
-- ARGV[3] n of the transfer   ARGV[4] its units
-- Reply: 1 now; 0 before; -1 no units move now
-- include sale/recovery.lua store
-- include sale/recovery.lua is_shut
-- include sale/buckets/buckets.lua is_still
if is_still(ARGV[1]) then return -1 end
local came = 'in:' .. ARGV[2]
local sale = redis.call('hmget', KEYS[1], 'capacity', came)
if tonumber(sale[2] or 0) >= tonumber(ARGV[3]) then return 0 end
redis.call('hset', KEYS[1], 'capacity', string.format('%.0f', sale[1] + ARGV[4]), came, ARGV[3])
return 1

-- script freeze
-- From now on no units move from or to this bucket, until its share is set.
-- KEYS[1] sale hash   ARGV[1] word of the recovery   ARGV[2] that of the moves, as it was seen
-- Reply: nil the bucket is not there, has to be recovered, or has another word now; else
--        {0, field, value, ...}
-- include sale/recovery.lua store
-- include sale/recovery.lua is_shut
local sale = redis.call('hmget', KEYS[1], 'capacity', 'recovering', 'store', 'moves')
if not sale[1] or is_shut(sale[2], sale[3]) or (sale[4] or '') ~= ARGV[2] then return false end
redis.call('hset', KEYS[1], 'frozen', ARGV[1])
return {0, unpack(redis.call('hgetall', KEYS[1]))}

-- script set_share
-- Set a frozen bucket's share, and forget its transfers.
-- KEYS[1] sale hash   ARGV[1] word of the recovery, now also of the moves   ARGV[2] the share
-- Reply: 1; 0 another recovery has begun, or the bucket is lost
-- include sale/recovery.lua store
-- include sale/recovery.lua is_shut
local sale = redis.call('hmget', KEYS[1], 'frozen', 'recovering', 'store')
if sale[1] ~= ARGV[1] or is_shut(sale[2], sale[3]) then return 0 end
local past = {'frozen'}  -- one is needed, and this one is written anew
for i, field in ipairs(redis.call('hgetall', KEYS[1])) do
  if i % 2 == 1 and (string.match(field, '^in:%d+$') or string.match(field, '^out:%d+$')) then
    past[#past + 1] = field
  end
end
redis.call('hdel', KEYS[1], unpack(past))
redis.call('hset', KEYS[1], 'capacity', ARGV[2], 'moves', ARGV[1], 'frozen', ARGV[1])
return 1

-- script thaw
-- Units may move from and to this bucket again, once all shares are set.
-- KEYS[1] sale hash   ARGV[1] word of the recovery
-- Reply: 1; 0 another recovery has begun
local sale = redis.call('hmget', KEYS[1], 'moves', 'frozen')
if sale[1] ~= ARGV[1] or (sale[2] or ARGV[1]) ~= ARGV[1] then return 0 end
redis.call('hdel', KEYS[1], 'frozen')
return 1
