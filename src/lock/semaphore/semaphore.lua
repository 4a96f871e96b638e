-- The scripts of Semaphore and PermitSemaphore. All but renew have these keys:
-- KEYS[1] free permits   KEYS[2] holds   KEYS[3] queue of tickets   KEYS[4] people
-- KEYS[5] turns of others (see lock/semaphore/parts.lua), and looks (see lock/wait/queue)

-- script acquire
-- Take permits, or wait for them in the queue.
-- ARGV[1] channel   ARGV[2] request id   ARGV[3] HOLDER (see lock/semaphore/parts.lua)
-- ARGV[4] inbox of the waiter; empty: do not wait   ARGV[5] when it came, us; '0': now
-- Reply: 1: held by this request, now or since an earlier copy of it or a hand-over;
--        {ms, time, leads, came}: refused. When to ask again, the server's time in ms, 1 if the
--        request is the head of the queue, and when it came.
-- include lock/hold/parts.lua server_time
-- include lock/wait/queue.lua inbox
-- include lock/wait/queue.lua strangers
-- include lock/wait/queue.lua processes
-- include lock/wait/queue.lua line
-- include lock/wait/queue.lua tickets
-- include lock/hold/parts.lua denied
-- include store/number.lua number
-- include lock/semaphore/parts.lua holds
-- include lock/semaphore/parts.lua queue
local refused = refusal()
if refused then
  return refused
end
local count, lease = string.match(ARGV[3], '^(%d+) (%d+)')
local back = reclaim()
local held = prolong(ARGV[2], ARGV[3], lease)
local ticket = ARGV[2] .. ' ' .. ARGV[4] .. ' ' .. ARGV[3]
if not held and ARGV[4] ~= '' and ARGV[5] ~= '0' then
  note_look(KEYS[5], ARGV[4])
  take_place(KEYS[3], ticket, ARGV[5])  -- it may have lost it, to a claim that ended unheard
end
local free, head, got = serve(ARGV[2], false)
local chance_left = left_to_strangers(KEYS[5])
if not held and not got and not head and free >= tonumber(count) and chance_left == 0 then
  take(ARGV[2], ARGV[3], lease)
  free = free - count
  got = true
end
if back > 0 then
  announce(free)
end
if held or got then
  note_look(KEYS[5], ARGV[4])
  return 1
end
if ARGV[4] == '' then
  return {-1, 0, 0}
end
local leads = (head or ticket) == ticket
-- It waits for what the first hold that ends gives back, or for what is left after a turn.
local first = call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')
local left = first[2] and math.max(0, tonumber(first[2]) - server_time()) or -1
if leads and chance_left > 0 then
  left = left < 0 and chance_left or math.min(left, chance_left)
end
local rest, came = stand(KEYS[3], KEYS[5], ticket, left, ARGV[5])
-- sharded: if not listens(ARGV[4]) then return {rest, -server_time(), leads and 1 or 0, came} end
return {rest, server_time(), leads and 1 or 0, came}

-- script release
-- End holds, and give what is free to the waiters; or end a wait.
-- KEYS[6] the answer to an earlier copy; where there is none, the answer to a copy is 0
-- ARGV[1] channel   ARGV[2] ticket to be taken out of the queue; empty: none
-- ARGV[3] ... members of the sorted set of holds
-- Reply: how many of them were held, and are free now.
-- include lock/hold/parts.lua server_time
-- include lock/wait/queue.lua inbox
-- include lock/wait/queue.lua strangers
-- include lock/wait/queue.lua processes
-- include lock/wait/queue.lua line
-- include lock/wait/queue.lua tickets
-- include lock/hold/parts.lua denied
-- include store/number.lua number
-- include lock/semaphore/parts.lua holds
-- include lock/semaphore/parts.lua queue
local before = KEYS[6] and call('GET', KEYS[6])
if before then
  return tonumber(before)
end
local back = reclaim()
local moved = ARGV[2] ~= '' and remove(KEYS[3], ARGV[2]) > 0
local ended = 0
for i = 3, #ARGV do
  local permits = give_back(ARGV[i])
  back = back + permits
  ended = ended + (permits > 0 and 1 or 0)
end
local free = serve('', moved)
if back > 0 then
  announce(free)
end
if KEYS[6] then
  call('SET', KEYS[6], ended, 'PX', 60000)
end
return ended

-- script change
-- Change how many permits there are, or look.
-- KEYS[6] the answer to an earlier copy; missing where copies do no harm
-- ARGV[1] channel   ARGV[2] what   ARGV[3] a number
-- Reply: look: how many are free          add: how many are free then, before anybody got them
--        drain: how many were free        set: the same as add
--        try_set: 1 set; 0 there was a number already
--        ensure: how many there are in all then
-- include lock/hold/parts.lua server_time
-- include lock/wait/queue.lua inbox
-- include lock/wait/queue.lua strangers
-- include lock/wait/queue.lua processes
-- include lock/wait/queue.lua line
-- include lock/wait/queue.lua tickets
-- include lock/hold/parts.lua denied
-- include store/number.lua number
-- include lock/semaphore/parts.lua holds
-- include lock/semaphore/parts.lua queue
local changes = {}

function changes.look(free)
  return free
end

function changes.add(_, number)
  return call('INCRBY', KEYS[1], number)
end

-- So many in all, those held included.
function changes.set(free, number)
  return call('INCRBY', KEYS[1], number - count_held() - free)
end

-- Holds of a semaphore that was deleted do not count in the new one.
function changes.try_set(_, number)
  if free_permits() then
    return 0
  end
  count_held()  -- or refuses a key that has other members
  call('DEL', KEYS[2], KEYS[4])
  call('SET', KEYS[1], number)
  return 1
end

function changes.ensure(free, number)
  local set = changes.try_set(free, number) == 1
  return set and tonumber(number) or free + count_held()
end

function changes.drain(free)
  if free > 0 then
    call('DECRBY', KEYS[1], free)
  end
  return math.max(free, 0)
end

local before = KEYS[6] and call('GET', KEYS[6])
if before then
  return tonumber(before)
end
local refused = refusal()
if refused then
  return refused
end
local back = reclaim()
local was = free_permits() or 0
local answer = changes[ARGV[2]](was, ARGV[3])
local now = free_permits() or 0
local free = serve('', false)
if back > 0 or now > was then
  announce(free)
end
if KEYS[6] then
  call('SET', KEYS[6], answer, 'PX', 60000)
end
return ARGV[2] == 'look' and free or answer

-- script renew
-- Prolong many holds of permits.
-- Goes on while its slot moves: it looks at each key by itself, and leaves it there.
-- KEYS[i] sorted set of holds   ARGV, two for each: member, lease in ms
-- Reply: for each key 1 prolonged, 0 the hold is gone.
-- include lock/hold/parts.lua server_time
local prolonged = {}
for i, key in ipairs(KEYS) do
  local member = ARGV[2 * i - 1]
  -- pcall: a key that became something else must not take the other holds with it
  local ends = redis.pcall('ZSCORE', key, member)
  prolonged[i] = 0
  if type(ends) == 'string' and tonumber(ends) > server_time() then
    -- First a write that needs no memory: a server that has none then refuses no other.
    redis.call('ZREM', key, '')
    redis.call('ZADD', key, server_time() + ARGV[2 * i], member)
    prolonged[i] = 1
  end
end
return prolonged

-- script update_lease
-- Give a hold another lease, from now on.
-- ARGV[1] channel   ARGV[2] member   ARGV[3] lease, ms
-- Reply: 1 done; 0 it is over.
-- include lock/hold/parts.lua server_time
-- include lock/wait/queue.lua inbox
-- include lock/wait/queue.lua strangers
-- include lock/wait/queue.lua processes
-- include lock/wait/queue.lua line
-- include lock/wait/queue.lua tickets
-- include lock/hold/parts.lua denied
-- include store/number.lua number
-- include lock/semaphore/parts.lua holds
-- include lock/semaphore/parts.lua queue
local back = reclaim()
local found = call('ZSCORE', KEYS[2], ARGV[2])
if found then
  call('ZADD', KEYS[2], end_of(ARGV[3]), ARGV[2])
end
local free, head = serve('', false)
if back > 0 then
  announce(free)
end
if found and head then  -- the end that the head waits for may come sooner
  local request, inbox = ticket_parts(head)
  call('PUBLISH', inbox, string.format('look %s %.0f', request, math.min(ARGV[3], 30000)))
end
return found and 1 or 0
