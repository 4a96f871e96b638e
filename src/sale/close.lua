-- End a sale for good.
-- KEYS[1] sale hash
-- Reply: 1, or 0 when there is no such sale
if redis.call('exists', KEYS[1]) == 0 then return 0 end
redis.call('hset', KEYS[1], 'closed', 1)
return 1
