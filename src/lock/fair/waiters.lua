-- Who waits, for people.
-- KEYS[1] queue   KEYS[2] tickets   ARGV[1] at most so many, below 1000
-- Reply: {owner, ticket, owner, ticket ...} in the order of the queue; see lock/fair/queue. Empty:
--        a waiter of Redisson's.
local shown = {}
for _, owner in ipairs(redis.call('LRANGE', KEYS[1], 0, ARGV[1] - 1)) do
  shown[#shown + 1] = owner
  shown[#shown + 1] = redis.call('HGET', KEYS[2], owner) or ''
end
return shown
