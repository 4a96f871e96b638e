-- Prolong many holds of quorums; a node that has lost one takes it up again, with its token.
-- KEYS, two for each hold: lock hash, fencing counter
-- ARGV, five for each hold: request id, lease in ms, owner, holder, token
-- Reply: for each hold 1 it has it, 0 another has the lock.
-- include lock/quorum/raise_token.lua
local held = {}
for i = 1, #KEYS / 2 do
  local key, at = KEYS[2 * i - 1], 5 * i - 4
  -- pcall: a key that became something else must not take the other holds with it
  local request = redis.pcall('HGET', key, 'sluice:request')
  if not request and redis.call('EXISTS', key) == 0 then
    redis.call('HSET', key, ARGV[at + 2], 1, 'sluice:request', ARGV[at], 'sluice:holder',
               ARGV[at + 3])
    raise_token(KEYS[2 * i], ARGV[at + 4])
    request = ARGV[at]
  end
  if request == ARGV[at] then
    redis.call('PEXPIRE', key, ARGV[at + 1])
    held[i] = 1
  else
    held[i] = 0
  end
end
return held
