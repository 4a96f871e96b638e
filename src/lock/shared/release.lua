-- How the holds of a SharedMutex end.

-- script release
-- End a hold and hand the lock over; or end the wait for one.
-- KEYS, ARGV[1] to ARGV[5]: see lock/shared/settle
-- ARGV[6] request id   ARGV[7] kind: r or w
-- ARGV[8] ticket to be taken out of the queue; empty: none
-- Reply: 1 ended; 0 there was no such hold.
-- include lock/hold/parts.lua server_time
-- include lock/shared/holds.lua holds
-- include lock/hold/parts.lua next_token
-- include lock/wait/queue.lua inbox
-- include lock/wait/queue.lua strangers
-- include lock/wait/queue.lua processes
-- include lock/wait/queue.lua line
-- include lock/wait/queue.lua tickets
-- include lock/shared/holds.lua survey
-- include lock/shared/settle.lua
local request, kind, ticket = ARGV[6], ARGV[7], ARGV[8]
local most_skew = 50  -- ms between a hold key and the hash that were prolonged together

local function free(payload)
  local handed, past = read_turn()
  call('DEL', KEYS[1], readers_of(ARGV[1]), writing_of(ARGV[1]))
  pass_on(payload, handed, past)
end

local function end_reading(left)
  local before = call('PTTL', KEYS[1])
  if call('HGET', KEYS[1], 'mode') == 'write' then
    return  -- its owner also writes
  end
  local ours = longest_of_ours()
  if ours and (left < ours or ours + most_skew >= before)
     or left + most_skew < before and call('EXISTS', KEYS[3]) == 0 then
    return  -- another reader lasts longer, and what a writer waits for is as it was
  end
  local longest, foreign = look_at_readers()
  if not longest then
    return free(0)
  end
  shorten_lock(KEYS[1], ARGV[1], longest)
  settle()
  if foreign or longest + most_skew < before then
    call_first(KEYS[3], foreign and 0 or longest)  -- what it waits for ends sooner, or silently
  end
end

-- An owner that also reads goes on reading, and all readers that wait join.
local function end_writing(owner)
  if call('HEXISTS', KEYS[1], owner .. ':write') == 1 then
    return  -- by another request
  end
  local longest, foreign = look_at_readers()
  if not longest then
    return free(1)
  end
  call('HSET', KEYS[1], 'mode', 'read')
  shorten_lock(KEYS[1], ARGV[1], longest)
  call('PUBLISH', ARGV[2], 1)
  admit_readers()
  call_first(KEYS[3], foreign and 0 or call('PTTL', KEYS[1]))
end

if ticket ~= '' then
  remove(kind == 'r' and KEYS[4] or KEYS[3], ticket)
  forget_looks()
end
local entries, _, owner = hold_of(KEYS[1], ARGV[1], kind, request)
if not entries then
  if ticket ~= '' then
    settle()
  end
  return 0
end
call('HDEL', notes_of(KEYS[1], ARGV[1], kind), 'sluice:' .. request)
local left = leave(KEYS[1], ARGV[1], kind, owner, entries)
if kind == 'r' then
  end_reading(left)
else
  end_writing(owner)
end
return 1

-- script force_release
-- End all holds there are, without asking their owners, and hand the lock over.
-- KEYS, ARGV: see lock/shared/settle   KEYS[6] the answer to an earlier copy
-- Reply: 1 ended; 0 it was free.
-- include lock/hold/parts.lua once
-- include lock/hold/parts.lua server_time
-- include lock/shared/holds.lua holds
-- include lock/hold/parts.lua next_token
-- include lock/wait/queue.lua inbox
-- include lock/wait/queue.lua strangers
-- include lock/wait/queue.lua processes
-- include lock/wait/queue.lua line
-- include lock/wait/queue.lua tickets
-- include lock/shared/settle.lua
-- include lock/hold/parts.lua denied
-- include lock/hold/parts.lua is_lock
local before = answered()
if before then
  return before
end
local mode = redis.pcall('HGET', KEYS[1], 'mode')
if call('EXISTS', KEYS[1]) == 1 and not is_lock(KEYS[1]) then
  return redis.error_reply(no_lock)
end
if not mode then
  return answer_once(0)
end
local fields = call('HGETALL', KEYS[1])
for i = 1, #fields, 2 do
  for n = 1, math.min(tonumber(fields[i + 1]) or 0, most_entries) do
    call('DEL', hold_key(ARGV[1], fields[i], n))
  end
end
call('DEL', KEYS[1], readers_of(ARGV[1]), writing_of(ARGV[1]))
pass_on(mode == 'read' and 0 or 1, 0, 0)
return answer_once(1)
