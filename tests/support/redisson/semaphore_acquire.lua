-- KEYS[1] free permits   ARGV[1] permits
-- Reply: 1 taken; 0 there are not so many.
if tonumber(redis.call('GET', KEYS[1]) or 0) < tonumber(ARGV[1]) then
  return 0
end
redis.call('DECRBY', KEYS[1], ARGV[1])
return 1
