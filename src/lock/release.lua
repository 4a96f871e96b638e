-- End a hold and wake whoever waits for it.
-- KEYS[1] lock hash
-- ARGV[1] request id of the hold   ARGV[2] channel
-- Reply: 1 ended; 0 the hold was gone already.
if redis.call('HGET', KEYS[1], 'sluice:request') ~= ARGV[1] then
  return 0
end
redis.call('DEL', KEYS[1])
redis.call('PUBLISH', ARGV[2], '0')
return 1
