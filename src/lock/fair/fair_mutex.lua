-- The scripts of FairMutex.

-- script acquire
-- Take a free lock if the queue is empty, or wait for it in the queue. A request that finds the
-- lock free while others wait gives it to the first of them. Re-entry is lock/mutex/recount.
-- KEYS[1] lock hash   KEYS[2] queue   KEYS[3] deadlines   KEYS[4] tickets   KEYS[5] fencing counter
-- ARGV[1] owner   ARGV[2] lease, ms   ARGV[3] request id   ARGV[4] holder, for people
-- ARGV[5] channel   ARGV[6] claim, ms   ARGV[7] inbox; empty: do not wait
-- ARGV[8] when it came, us; '0': now
-- Reply: an integer, the token: held by this request, now or since an earlier copy of it or a
--        hand-over;
--        {ms, time, foreign, came}: refused. Look again in so many ms (-1: whenever); the server's
--        time in ms; 1: a waiter or holder of Redisson's is before us, and will publish its release
--        to our channel; when it came.
local call = redis.call
-- include lock/hold/parts.lua server_time
-- include lock/hold/parts.lua next_token
-- include lock/fair/fair_mutex.lua let_in
local me, lease, request, holder, channel, claim, inbox, came = unpack(ARGV)
if call('EXISTS', KEYS[1], KEYS[2], KEYS[4]) == 0 then
  local token = next_token(KEYS[5], 1)
  let_in(me, request, holder, lease)
  return token
end
-- include lock/wait/queue.lua inbox
-- include lock/wait/queue.lua processes
-- include lock/fair/fair_mutex.lua queue
-- include lock/fair/hand_over.lua
local holds = redis.pcall('HGET', KEYS[1], 'sluice:request')
if holds == request then
  call('PEXPIRE', KEYS[1], lease)
  note_look(KEYS[4], inbox)
  return tonumber(call('GET', KEYS[5])) or next_token(KEYS[5], 1)  -- this hold is the latest
end
-- Another request of this owner may have left a ticket: a request that waits takes it over.
local waits, arrived = string.match(call('HGET', KEYS[4], me) or '', '^(%S+) %d+ (%d+)')
local mine = inbox ~= '' or not waits or waits == request

local free_until
if not holds and call('EXISTS', KEYS[1]) == 0 then
  local first
  note_look(KEYS[4], inbox)
  first, free_until = hand_over(channel, mine and me or nil,
                                inbox ~= '' and came ~= '0' and tonumber(came))
  if first then
    if waits or call('EXISTS', KEYS[2]) == 1 then
      take_turn(me)
    end
    local token = next_token(KEYS[5], 1)
    let_in(me, request, holder, lease)
    return token
  end
  holds = call('HGET', KEYS[1], 'sluice:request')
elseif type(holds) ~= 'string' then
-- include lock/hold/parts.lua denied
-- include lock/hold/parts.lua is_lock
  if type(holds) == 'table' or not is_lock(KEYS[1], 64) then
    return redis.error_reply(denied(holds, 'HGET', no_lock))
  end
end
local left = free_until and free_until - server_time() or call('PTTL', KEYS[1])
if inbox == '' then
  return {left, server_time(), 0}
end

local function arrival_of(owner)
  return tonumber(string.match(call('HGET', KEYS[4], owner or '') or '', '^%S+ %d+ (%d+)'))
end

-- A waiter that was dropped returns before all waiters that came later. Redisson drops the first
-- of the queue by the clock of a client: then it still has its ticket, and came before Redisson's.
local function return_to_its_place()
  for place, other in ipairs(call('LRANGE', KEYS[2], 0, 999)) do
    local theirs = arrival_of(other)
    if theirs and theirs > arrived or waits and not theirs then
      call('LINSERT', KEYS[2], 'BEFORE', other, me)
      return place - 1
    end
  end
  return call('RPUSH', KEYS[2], me) - 1
end

-- Its place among the first, else behind them; nil: it has none. Redisson, too, keeps deadlines of
-- those alone that stand in the queue.
local function place_now()
  if not call('ZSCORE', KEYS[3], me) then
    return nil
  end
  for i, other in ipairs(call('LRANGE', KEYS[2], 0, most_seen - 1)) do
    if other == me then
      return i - 1
    end
  end
  return call('LLEN', KEYS[2]) > most_seen and most_seen or nil
end

local function find_or_take_place()
  return place_now() or arrived > 0 and return_to_its_place() or call('RPUSH', KEYS[2], me) - 1
end

-- At least our patience for each that is before us, whatever Redisson takes off; at most what
-- Redisson would say to a newcomer.
local function set_deadline(place)
  local before = place > 0 and call('ZSCORE', KEYS[3], call('LINDEX', KEYS[2], place - 1))
  local most = (before and tonumber(before) or server_time() + math.max(left, 0)) + patience
  local has = tonumber(call('ZSCORE', KEYS[3], me))
  if place >= most_seen then
    most = has or 0  -- what is before it was not moved up
  end
  local deadline = math.max(math.min(has or most, most), server_time() + patience * (place + 1))
  call('ZADD', KEYS[3], deadline, me)
  return deadline
end

-- How many other processes are before a place, and whether Redisson is: in the queue, or holding.
local function look_before(place)
  local foreign = not (holds or free_until)
  if place >= most_seen then
    local stranger = call('HGET', KEYS[4], 'sluice:inbox:stranger') or ''
    foreign = foreign or call('ZSCORE', KEYS[3], stranger)
  end
  local known, many = {[inbox] = true}, 0
  for first = 0, math.min(place, most_seen) - 1, 50 do
    local owners = call('LRANGE', KEYS[2], first, math.min(first + 50, place) - 1)
    for i, ticket in ipairs(call('HMGET', KEYS[4], unpack(owners))) do
      local process = ticket and inbox_of(ticket) or owners[i]
      foreign = foreign or not ticket
      if not known[process] and many < most_counted then
        known[process] = true
        many = many + ((not ticket or runs(KEYS[4], process)) and 1 or 0)
      end
    end
  end
  return many, foreign
end

arrived = tonumber(arrived or came)
local before = call('LINDEX', KEYS[2], -1)
local place = find_or_take_place()
local deadline = set_deadline(place)
if before and before ~= me and call('HEXISTS', KEYS[4], before) == 0 then
  call('HSET', KEYS[4], 'sluice:inbox:stranger', before)
end
if arrived == 0 then
  server_time()
  arrived = math.max(asked_us, (arrival_of(before) or 0) + 1)
end
call('HSET', KEYS[4], me,
     string.format('%s %s %.0f %s ', request, claim, arrived, inbox) .. holder)
local many, foreign = look_before(place)
-- Together they end, so that none of ours is taken for Redisson's; where some of Redisson's wait,
-- not before one of those that came after us.
local last = call('LINDEX', KEYS[2], -1)
local beside_strangers = foreign or call('HEXISTS', KEYS[4], last) == 0
local kept = beside_strangers and deadline - server_time() + patience
  or math.max(call('PTTL', KEYS[2]), queue_kept)
for i = 2, 4 do
  call('PEXPIRE', KEYS[i], kept)
end
-- Redisson tells its release to the first waiter alone, which may be dead.
local rest = promise_look(KEYS[4], inbox, many, left, foreign and 500 or nil)
-- sharded: if not listens(inbox) then
-- sharded:   return {rest, -server_time(), foreign and 1 or 0, arrived}
-- sharded: end
return {rest, server_time(), foreign and 1 or 0, arrived}

-- script release
-- End a hold and hand the lock over; or end the wait for one.
-- KEYS[1] lock hash   KEYS[2] queue   KEYS[3] deadlines   KEYS[4] tickets   KEYS[5] fencing counter
-- ARGV[1] request id   ARGV[2] channel   ARGV[3] owner that waits by that request; empty: none
-- Reply: 1 ended; 0 there was no such hold.
local call = redis.call
if call('EXISTS', KEYS[2], KEYS[4]) == 0 then  -- nobody waits
  return call('HGET', KEYS[1], 'sluice:request') == ARGV[1] and call('DEL', KEYS[1]) or 0
end
-- include lock/hold/parts.lua server_time
-- include lock/hold/parts.lua next_token
-- include lock/fair/fair_mutex.lua let_in
-- include lock/wait/queue.lua inbox
-- include lock/wait/queue.lua processes
-- include lock/fair/fair_mutex.lua queue
-- include lock/fair/hand_over.lua
local left_queue = ARGV[3] ~= ''
  and string.match(call('HGET', KEYS[4], ARGV[3]) or '', '^%S+') == ARGV[1] and leave(ARGV[3])
if call('HGET', KEYS[1], 'sluice:request') == ARGV[1] then
  call('DEL', KEYS[1])
  hand_over(ARGV[2])
  return 1
end
if left_queue and call('EXISTS', KEYS[1]) == 0 then  -- it may have been the one to take it
  hand_over(ARGV[2])
end
return 0

-- script force_release
-- End whatever hold there is, without asking its owner, and hand the lock over.
-- KEYS[1] lock hash   KEYS[2] queue   KEYS[3] deadlines   KEYS[4] tickets   KEYS[5] fencing counter
-- KEYS[6] the answer to an earlier copy
-- ARGV[1] channel
-- Reply: 1 ended; 0 it was free.
-- include lock/hold/parts.lua once
-- include lock/hold/parts.lua server_time
-- include lock/hold/parts.lua next_token
-- include lock/fair/fair_mutex.lua let_in
-- include lock/wait/queue.lua inbox
-- include lock/wait/queue.lua processes
-- include lock/fair/fair_mutex.lua queue
-- include lock/fair/hand_over.lua
-- include lock/hold/parts.lua denied
-- include lock/hold/parts.lua is_lock
local before = answered()
if before then
  return before
end
if redis.call('EXISTS', KEYS[1]) == 1 and not is_lock(KEYS[1]) then
  return redis.error_reply(no_lock)
end
local ended = redis.call('DEL', KEYS[1])
hand_over(ARGV[1])
return answer_once(ended)

-- script waiters
-- The waiters, for people.
-- KEYS[1] queue   KEYS[2] tickets   ARGV[1] at most so many, below 1000
-- Reply: {owner, ticket, owner, ticket ...} in the order of the queue; see lock/fair/queue. Empty:
--        a waiter of Redisson's.
local shown = {}
for _, owner in ipairs(redis.call('LRANGE', KEYS[1], 0, ARGV[1] - 1)) do
  shown[#shown + 1] = owner
  shown[#shown + 1] = redis.call('HGET', KEYS[2], owner) or ''
end
return shown

-- part let_in
local function let_in(owner, request, holder, ttl)
  redis.call('HSET', KEYS[1], owner, 1, 'sluice:request', request, 'sluice:holder', holder)
  redis.call('PEXPIRE', KEYS[1], ttl)
end

-- part queue
-- The queue of a fair lock as Redisson keeps it, and our tickets beside it.
-- KEYS[2] list of owners, first come first   KEYS[3] sorted set of them by deadline, ms
-- KEYS[4] hash: owner -> ticket "request claim arrived inbox holder", the claim in ms, when it came
--         in us of the server's clock, no two at once. A waiter without a ticket is Redisson's.
--         Also the looks of lock/wait/queue, and `sluice:inbox:stranger`: the latest of Redisson's
--         that stood last when one of ours came.
local patience = 300000  -- that Redisson has with each that waits
local most_seen = 100    -- waiters

-- Moves the deadlines of waiters behind `place`: of the first, for Redisson drops no other. Those
-- further behind have too much time then, until it is their turn to be seen.
local function move_up(place, by)
  for _, owner in ipairs(redis.call('LRANGE', KEYS[2], place + 1, place + most_seen)) do
    redis.call('ZADD', KEYS[3], 'XX', 'INCR', -by, owner)
  end
end

-- Tickets may stay: of waiters that Redisson dropped, and that will return.
local function forget_looks()
  for _, field in ipairs(redis.call('HKEYS', KEYS[4])) do
    if string.sub(field, 1, 13) == 'sluice:inbox:' then
      redis.call('HDEL', KEYS[4], field)
    end
  end
end

local function leave(owner)
  local place = redis.call('LPOS', KEYS[2], owner)
  if place then
    move_up(place, patience)
    redis.call('LREM', KEYS[2], 1, owner)
  end
  redis.call('ZREM', KEYS[3], owner)
  redis.call('HDEL', KEYS[4], owner)
  if redis.call('EXISTS', KEYS[2]) == 0 then
    forget_looks()
  end
  return place
end
