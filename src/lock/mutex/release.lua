-- End a hold and wake whoever waits for it.
-- KEYS[1] lock hash
-- ARGV[1] request id of the hold   ARGV[2] channel
-- Reply: 1 ended; 0 the hold was gone already.
local call = redis.call
if call('HGET', KEYS[1], 'sluice:request') ~= ARGV[1] then
  return 0
end
call('DEL', KEYS[1])
call('PUBLISH', ARGV[2], '0')
return 1
