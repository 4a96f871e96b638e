-- Change the rate of a limiter, or define it. The free permits are counted anew by the next
-- acquire.
-- KEYS[1] definition hash
-- ARGV[1] rate   ARGV[2] interval, ms   ARGV[3] kind   ARGV[4] keep alive, ms; 0: for ever
-- Reply: 1 done; 0 it is of another kind.
local kind = redis.call('HGET', KEYS[1], 'type')
if kind and kind ~= ARGV[3] then
  return 0
end
redis.call('HSET', KEYS[1], 'rate', ARGV[1], 'interval', ARGV[2], 'type', ARGV[3],
           'keepAliveTime', ARGV[4])
if tonumber(ARGV[4]) > 0 then
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
end
return 1
