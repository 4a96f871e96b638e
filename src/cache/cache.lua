-- The scripts of CacheGuard.
-- KEYS[1] value   KEYS[2] lease: hash {owner, waited: 1 if somebody waits for its end}
-- The channel and the word on it: where and as what the end of a load is told.

-- part now
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

-- part tell
-- Ends the lease, whose ever it is, and wakes those who wait for it. All keys of a guard share a
-- channel, so in a cluster it is no shard channel, and the build does not make it one: "", not ''.
local function end_lease(channel, word)
  local waited = redis.call('HGET', KEYS[2], 'waited')
  redis.call('DEL', KEYS[2])
  if waited then
    redis.call("PUBLISH", channel, word)
  end
end

-- part ours
-- Ends the script where another program has written what is there.
if redis.call('GETRANGE', KEYS[1], 0, 2) ~= 'SLC' and redis.call('EXISTS', KEYS[1]) == 1 then
  return redis.error_reply('WRONGTYPE it holds something that no cache guard has written: ' ..
                           'give the guard another name, or delete the key')
end

-- script look
-- A value, or the right to load it.
-- ARGV[1] owner   ARGV[2] lease, ms   ARGV[3] 1: the caller waits if another loads
-- ARGV[4] the head of a value that is to be loaded anew; '': none
-- Reply: {now us, 'value', text} · {now us, 'lead', owner} · {now us, 'busy', ms left of the lease}
-- The owner of a lease has the time at which it began: what a late copy of this question begins is
-- another lease, by which no load is stored, and which ends by itself.
-- include cache/cache.lua now
local known
if ARGV[4] == '' then
  known = redis.call('GET', KEYS[1])
elseif redis.call('GETRANGE', KEYS[1], 0, #ARGV[4] - 1) ~= ARGV[4] then
  known = redis.call('GET', KEYS[1])
end
if known then
  return {now, 'value', known}
end
local owner = redis.call('HGET', KEYS[2], 'owner')
if owner and string.match(owner, '^(.*)@') ~= ARGV[1] then
  if ARGV[3] == '1' then
    redis.call('HSET', KEYS[2], 'waited', '1')
  end
  local left = redis.call('PTTL', KEYS[2])
  if left < 0 then  -- somebody took its end away
    redis.call('PEXPIRE', KEYS[2], ARGV[2])
    left = tonumber(ARGV[2])
  end
  return {now, 'busy', left}
end
if not owner then
  owner = ARGV[1] .. '@' .. string.format('%.0f', now)
  redis.call('HSET', KEYS[2], 'owner', owner)
end
redis.call('PEXPIRE', KEYS[2], ARGV[2])
return {now, 'lead', owner}

-- script store
-- Store what was loaded, unless the lease is over or taken away: an invalidation takes it away.
-- ARGV[1] owner; '': whatever is there   ARGV[2] v or a   ARGV[3] a value is fresh for so many ms
-- ARGV[4] and kept for so many; an absence until then, ms   ARGV[5] us that the load took
-- ARGV[6] channel   ARGV[7] word   ARGV[8] value
-- Reply: {now us, 1 or 0: stored}
-- include cache/cache.lua now
-- include cache/cache.lua tell
-- include cache/cache.lua ours
if ARGV[1] ~= '' and redis.call('HGET', KEYS[2], 'owner') ~= ARGV[1] then
  return {now, 0}
end
local is_absent = ARGV[2] == 'a'
local fresh_until = is_absent and ARGV[4] * 1000 or now + ARGV[3] * 1000
local head = string.format('SLC1%s %.0f %s\n', ARGV[2], fresh_until, ARGV[5])
-- The first write: behind one that frees memory a server that is full would let it pass.
redis.call('SET', KEYS[1], head .. ARGV[8], is_absent and 'PXAT' or 'PX', ARGV[4])
end_lease(ARGV[6], ARGV[7])
return {now, 1}

-- script renew
-- Lengthen the lease of a load that runs, unless it is over or taken away.
-- ARGV[1] owner   ARGV[2] lease, ms
-- Reply: 1 or 0: it is the owner's
if redis.call('HGET', KEYS[2], 'owner') ~= ARGV[1] then
  return 0
end
redis.call('PEXPIRE', KEYS[2], ARGV[2])
return 1

-- script give_back
-- The load failed, what it brought is not to be stored, or nobody knows whether there is a lease.
-- ARGV[1] owner, as `look` was asked or has told   ARGV[2] channel   ARGV[3] word
-- include cache/cache.lua tell
local owner = redis.call('HGET', KEYS[2], 'owner')
if owner and string.match(owner, '^[^@]*') == string.match(ARGV[1], '^[^@]*') then
  end_lease(ARGV[2], ARGV[3])
end
return 1

-- script invalidate
-- Remove the value, and take the load from the process that runs it.
-- ARGV[1] channel   ARGV[2] word
-- include cache/cache.lua tell
-- include cache/cache.lua ours
redis.call('DEL', KEYS[1])
end_lease(ARGV[1], ARGV[2])
return 1

-- script admit_absent
-- Whether one more absence may be stored: so many in each half of their time, and none until later
-- than the end of the next half. It ends somewhere in the second half of what it may, and the first
-- half of all begins with an absence, so that no two lots end together. Guards that keep them for
-- another time share the halves: who begins one says how long the next is.
-- KEYS[1] hash {when this half ends and when the next, ms, and the count of this}
-- ARGV[1] most in a half   ARGV[2] half, ms   ARGV[3] where in its part, at random: from 0 to 1
-- Reply: {now us, until when it may be kept, ms} · {now us, 0, ms until others may be stored}
-- include cache/cache.lua now
local length, now_ms = tonumber(ARGV[2]), math.floor(now / 1000)
local known = redis.call('HMGET', KEYS[1], 'end', 'next_end', 'count')
local half_end, next_end = tonumber(known[1]), tonumber(known[2])
local count = tonumber(known[3])
if not (half_end and next_end and count) or now_ms >= next_end then
  half_end, count = now_ms + length, 0
  next_end = half_end + length
elseif now_ms >= half_end then
  half_end, next_end, count = next_end, next_end + length, 0
end
if count >= tonumber(ARGV[1]) then
  return {now, 0, half_end - now_ms}
end
redis.call('HSET', KEYS[1], 'end', string.format('%.0f', half_end),
           'next_end', string.format('%.0f', next_end), 'count', count + 1)
redis.call('PEXPIREAT', KEYS[1], string.format('%.0f', next_end))
local most = math.min(next_end - now_ms, 2 * length)
return {now, now_ms + math.floor(most * (1 + ARGV[3]) / 2)}

-- script plan_again
-- Plan a second invalidation; of two of one key the later one stays.
-- KEYS[1] zset: key by the time when it is due, ms   ARGV[1] in so many ms   ARGV[2] key
-- include cache/cache.lua now
redis.call('ZADD', KEYS[1], 'GT', string.format('%.0f', math.ceil(now / 1000) + ARGV[1]), ARGV[2])
return now

-- script due_again
-- Take what is due. It is due again after a while, unless done_again takes it out.
-- KEYS[1] zset   ARGV[1] at most so many   ARGV[2] retry, ms
-- Reply: {now us, ms until the next is due or -1, key, its time, key, its time ...}
-- include cache/cache.lua now
local now_ms = math.floor(now / 1000)
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now_ms, 'LIMIT', 0, ARGV[1])
local later = string.format('%.0f', now_ms + ARGV[2])
local reply = {now, -1}
for _, key in ipairs(due) do
  redis.call('ZADD', KEYS[1], later, key)
  reply[#reply + 1] = key
  reply[#reply + 1] = later
end
local next = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
if next[2] then
  reply[2] = math.max(0, math.ceil(next[2] - now_ms))
end
return reply

-- script done_again
-- It is done, unless it was planned once more meanwhile.
-- KEYS[1] zset   ARGV[1] key   ARGV[2] its time
local planned = redis.call('ZSCORE', KEYS[1], ARGV[1])
if planned and tonumber(planned) == tonumber(ARGV[2]) then
  redis.call('ZREM', KEYS[1], ARGV[1])
end
return 1
