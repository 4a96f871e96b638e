-- RBloomFilter.contains: of some elements.
-- KEYS[1] config   KEYS[2] bits   ARGV[1] size   ARGV[2] hashIterations   ARGV[3] and on: indexes
-- Reply: how many are there; 0 where the config is another.
local size = redis.call('hget', KEYS[1], 'size')
local hashes = redis.call('hget', KEYS[1], 'hashIterations')
if size ~= ARGV[1] or hashes ~= ARGV[2] then return 0 end
local k, there = tonumber(hashes), 0
for first = 3, #ARGV, k do
  local missing = false
  for i = first, first + k - 1 do
    if redis.call('getbit', KEYS[2], ARGV[i]) == 0 then missing = true end
  end
  if not missing then there = there + 1 end
end
return there
