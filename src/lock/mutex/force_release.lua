-- End whatever hold there is, without asking its owner, and wake whoever waits for it.
-- KEYS[1] lock hash   ARGV[1] channel
-- Reply: 1 ended; 0 nobody held it.
if redis.call('DEL', KEYS[1]) == 0 then
  return 0
end
redis.call('PUBLISH', ARGV[1], '0')
return 1
