-- The scripts of QuorumLock at one node, beside those of Mutex.

-- part raise_token
-- Lifts a fencing counter to `token`, decimal; Lua counts exactly up to 2^53. False: what stands
-- there is no counter, and stays.
local function raise_token(counter, token)
  local last = redis.pcall('GET', counter)
  local count = type(last) ~= 'table' and tonumber(last or 0)
  if count and count < tonumber(token) then
    redis.call('SET', counter, token, 'PX', 90000000)  -- as part next_token
  end
  return count
end

-- script raise
-- Let the counter of a node know the token of a hold that it has granted.
-- Goes on while its slot moves: its keys stay there.
-- KEYS[1] lock hash   KEYS[2] fencing counter   ARGV[1] request id   ARGV[2] token
-- Reply: 1 every later hold of this node has a larger one; 0 the hold is gone.
-- include lock/quorum/quorum.lua raise_token
if redis.call('HGET', KEYS[1], 'sluice:request') ~= ARGV[1] then
  return 0
end
return raise_token(KEYS[2], ARGV[2]) and 1
  or redis.error_reply('WRONGTYPE the fencing counter of this lock is no number')

-- script renew
-- Prolong many holds of quorums; a node that has lost one takes it up again, with its token.
-- Goes on while its slot moves: its keys stay there.
-- KEYS, two for each hold: lock hash, fencing counter
-- ARGV, five for each hold: request id, lease in ms, owner, holder, token
-- Reply: for each hold 1 it has it, 0 another has the lock.
-- include lock/quorum/quorum.lua raise_token
local held = {}
for i = 1, #KEYS / 2 do
  local key, at = KEYS[2 * i - 1], 5 * i - 4
  -- pcall: a key that became something else must not take the other holds with it
  local request = redis.pcall('HGET', key, 'sluice:request')
  if not request and redis.call('EXISTS', key) == 0
     and raise_token(KEYS[2 * i], ARGV[at + 4]) then
    redis.call('HSET', key, ARGV[at + 2], 1, 'sluice:request', ARGV[at], 'sluice:holder',
               ARGV[at + 3])
    request = ARGV[at]
  end
  held[i] = request == ARGV[at] and redis.call('PEXPIRE', key, ARGV[at + 1]) or 0
end
return held
