-- Holds of a Mutex that hang on no process: who knows the owner renews and ends them, anywhere.
-- KEYS as in lock/mutex/mutex.lua

-- script lease
-- Take a free lock. Who waits for it listens to the channel, as programs do that are not ours: a
-- release leaves it the lock for a moment, which is why nobody's moment is looked at here.
-- ARGV[1] owner   ARGV[2] lease, ms   ARGV[3] request id   ARGV[4] holder, for people
-- Reply: {1, token} held from now on; {2, token} held since an earlier copy of the request, which
--        is noted, and the lease begins again; {0, left} another holds it for so many ms, -1: it
--        has no end.
-- include lock/hold/parts.lua server_time
-- include lock/hold/parts.lua next_token
-- include lock/hold/parts.lua denied
-- include lock/hold/parts.lua is_lock
local call, lock = redis.call, KEYS[1]
local request = redis.pcall('HGET', lock, 'sluice:request')
if request == ARGV[3] then
  call('PEXPIRE', lock, ARGV[2])
  call('HINCRBY', lock, 'sluice:repeats', 1)
  return {2, tonumber(call('GET', KEYS[2])) or next_token(KEYS[2], 1)}
end
if call('EXISTS', lock) == 1 then
  if type(request) == 'table' or type(request) ~= 'string' and not is_lock(lock, 64) then
    return redis.error_reply(denied(request, 'HGET', no_lock))
  end
  return {0, call('PTTL', lock)}
end
local token = next_token(KEYS[2], 1)
call('HSET', lock, ARGV[1], '1', 'sluice:request', ARGV[3], 'sluice:holder', ARGV[4])
call('PEXPIRE', lock, ARGV[2])
return {1, token}

-- script prolong
-- Goes on while its slot moves: its keys stay there.
-- ARGV[1] request id   ARGV[2] lease, ms
-- Reply: the token; nil: there is no such hold.
-- include lock/hold/parts.lua server_time
-- include lock/hold/parts.lua next_token
if redis.call('HGET', KEYS[1], 'sluice:request') ~= ARGV[1] then
  return false
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('PEXPIRE', KEYS[2], counter_kept)  -- a hold may last for longer
return tonumber(redis.call('GET', KEYS[2])) or next_token(KEYS[2], 1)

-- script withdraw
-- End a hold of which nobody was told: its caller has gone. One that was asked for again since is
-- another caller's, and so is a later one of the same wish, which has another token.
-- ARGV[1] request id   ARGV[2] channel   ARGV[3] most hand-overs in a row   ARGV[4] its token
-- Reply: 1 ended; 0 not.
-- include lock/hold/parts.lua server_time
-- include lock/hold/parts.lua next_token
-- include lock/wait/queue.lua inbox
-- include lock/wait/queue.lua strangers
-- include lock/wait/queue.lua processes
-- include lock/wait/queue.lua list
-- include lock/wait/queue.lua tickets
-- include lock/mutex/mutex.lua grant
-- include lock/mutex/mutex.lua hand_over
local held = redis.call('HMGET', KEYS[1], 'sluice:request', 'sluice:repeats')
local token = tonumber(redis.call('GET', KEYS[2]) or nil)
if held[1] ~= ARGV[1] or held[2] or token ~= tonumber(ARGV[4]) then
  return 0
end
hand_over(ARGV[2], tonumber(ARGV[3]))
return 1
