-- RBloomFilter.add: of some elements.
-- KEYS[1] config   KEYS[2] bits   ARGV[1] size   ARGV[2] hashIterations   ARGV[3] and on: indexes
-- Reply: how many elements have set a bit.
local size = redis.call('hget', KEYS[1], 'size')
local hashes = redis.call('hget', KEYS[1], 'hashIterations')
assert(size == ARGV[1] and hashes == ARGV[2], 'Bloom filter config has been changed')
local k, new = tonumber(hashes), 0
for first = 3, #ARGV, k do
  local changed = false
  for i = first, first + k - 1 do
    if redis.call('setbit', KEYS[2], ARGV[i], 1) == 0 then changed = true end
  end
  if changed then new = new + 1 end
end
return new
