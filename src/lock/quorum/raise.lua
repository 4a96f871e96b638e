-- Let the counter of a node know the token of a hold that it has granted.
-- KEYS[1] lock hash   KEYS[2] fencing counter   ARGV[1] request id   ARGV[2] token
-- Reply: 1 every later hold of this node has a larger one; 0 the hold is gone.
-- include lock/quorum/raise_token.lua
if redis.call('HGET', KEYS[1], 'sluice:request') ~= ARGV[1] then
  return 0
end
raise_token(KEYS[2], ARGV[2])
return 1
