-- Remove a consumer that stops from the group, unless entries are pending for it: the worker that
-- claims them must still see them.
-- KEYS[1] orders stream   ARGV[1] consumer group   ARGV[2] consumer
-- Reply: 1 when it is gone
if #redis.call('xpending', KEYS[1], ARGV[1], '-', '+', 1, ARGV[2]) > 0 then return 0 end
redis.call('xgroup', 'delconsumer', KEYS[1], ARGV[1], ARGV[2])
return 1
