-- script create
-- Define a sale, unless it is there already.
-- KEYS[1] sale hash   KEYS[2] orders stream
-- ARGV[1] consumer group   then pairs: field, value of the definition
-- Reply: {} when it was created now, else the stored values of these fields, in their order
local fields = {}
for i = 2, #ARGV, 2 do fields[#fields + 1] = ARGV[i] end

local created = redis.call('exists', KEYS[1]) == 0
if created then redis.call('hset', KEYS[1], 'sold', 0, 'orders', 0, unpack(ARGV, 2)) end
-- Always: a stream that was lost alone gets its group back.
local made = redis.pcall('xgroup', 'create', KEYS[2], ARGV[1], 0, 'mkstream')
if made.err and not string.find(made.err, 'BUSYGROUP', 1, true) then return made end
if created then return {} end
return redis.call('hmget', KEYS[1], unpack(fields))

-- script close
-- End a sale for good.
-- KEYS[1] sale hash
-- Reply: 1, or 0 when there is no such sale
if redis.call('exists', KEYS[1]) == 0 then return 0 end
redis.call('hset', KEYS[1], 'closed', 1)
return 1
