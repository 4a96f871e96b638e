-- RBloomFilter.tryInit: define a filter.
-- KEYS[1] config   ARGV: size, hashIterations, expectedInsertions, falseProbability
-- Reply: 1 defined; 0 it was.
if redis.call('exists', KEYS[1]) == 1 then return 0 end
local fields = {'size', 'hashIterations', 'expectedInsertions', 'falseProbability'}
for i, field in ipairs(fields) do redis.call('hset', KEYS[1], field, ARGV[i]) end
return 1
