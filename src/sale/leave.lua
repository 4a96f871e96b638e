-- Take a consumer that stops off the group, unless something is pending for it: whoever claims that
-- must still see it.
-- KEYS[1] orders stream   ARGV[1] consumer group   ARGV[2] consumer
-- Reply: 1 when it is gone
if #redis.call('xpending', KEYS[1], ARGV[1], '-', '+', 1, ARGV[2]) > 0 then return 0 end
redis.call('xgroup', 'delconsumer', KEYS[1], ARGV[1], ARGV[2])
return 1
