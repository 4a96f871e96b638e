-- A hold in a lock hash, of a Mutex or a FairMutex: prolonged and counted.

-- script renew
-- Prolong many holds, and note their owners.
-- Goes on while its slot moves: it looks at each key by itself, and leaves it there.
-- KEYS[i] lock hash
-- ARGV, six for each hold: request id, lease in ms, owner, entries, holder, how long in ms
-- Reply: for each key 1 prolonged, 0 the hold is gone.
-- include lock/hold/parts.lua server_time
-- include lock/mutex/hash_hold.lua own
local prolonged = {}
for i, key in ipairs(KEYS) do
  local at = 6 * i - 5
  -- pcall: a key that became something else must not take the other holds with it
  if redis.pcall('HGET', key, 'sluice:request') == ARGV[at] then
    redis.call('PEXPIRE', key, ARGV[at + 1])  -- first: it needs no memory
    own(key, ARGV[at + 2], ARGV[at + 3], ARGV[at + 4], ARGV[at + 5])
    prolonged[i] = 1
  else
    prolonged[i] = 0
  end
end
return prolonged

-- script recount
-- Enter a hold once more, or leave it while entries remain: says how many entries there are from
-- now on.
-- Goes on while its slot moves: it has one key, and leaves it there.
-- KEYS[1] lock hash
-- ARGV[1] request id of the hold   ARGV[2] lease, ms   ARGV[3] owner   ARGV[4] entries
-- ARGV[5] holder, for people   ARGV[6] how long it has been in, ms
-- Reply: 1 done; 0 the hold is gone.
-- include lock/hold/parts.lua server_time
-- include lock/mutex/hash_hold.lua own
if redis.call('HGET', KEYS[1], 'sluice:request') ~= ARGV[1] then
  return 0
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
own(KEYS[1], ARGV[3], ARGV[4], ARGV[5], ARGV[6])
return 1

-- part own
-- Notes the owner, since a process may pass its hold to another of its owners without asking, and
-- since when it holds: `held_for` ms, -1 for an owner that the server has let in, whose token says
-- when. What is noted already is not written: a server without memory would refuse it.
local function own(key, owner, entries, holder, held_for)
  local has, people, since = unpack(redis.call('HMGET', key, owner, 'sluice:holder',
                                               'sluice:since'))
  if has ~= entries or people ~= holder then
    if not has then
      for _, field in ipairs(redis.call('HKEYS', key)) do
        if string.sub(field, 1, 7) ~= 'sluice:' then
          redis.call('HDEL', key, field)
        end
      end
    end
    redis.call('HSET', key, owner, entries, 'sluice:holder', holder)
  end
  if tonumber(held_for) >= 0 then
    local began = server_time() - held_for
    if math.abs((tonumber(since) or 0) - began) > 1000 then
      redis.call('HSET', key, 'sluice:since', began)
    end
  end
end
