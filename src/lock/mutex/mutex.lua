-- The scripts of Mutex.

-- script acquire
-- Take a free lock, or wait for it in the queue. An owner that has it already is refused like
-- any other: re-entry is lock/mutex/recount.
-- KEYS[1] lock hash   KEYS[2] fencing counter   KEYS[3] queue of tickets
-- ARGV[1] owner   ARGV[2] lease, ms   ARGV[3] request id   ARGV[4] holder, for people
-- ARGV[5] ticket (see lock/mutex/hand_over); empty: do not wait
-- Reply: an integer, the token: held by this request, now or since an earlier copy of it or a
--        hand-over;
--        {ms, time, foreign}: refused. The hold in the way has so much of its lease left (-1: it
--        has no end); the server's time in ms, 0 where we do not wait; 1: the holder knows no
--        queue.
local call, lock = redis.call, KEYS[1]
-- include lock/hold/parts.lua next_token
-- include lock/hold/parts.lua server_time
if call('EXISTS', lock) == 0 then
  local token = next_token(KEYS[2], 1)
  call('HSET', lock, ARGV[1], 1, 'sluice:request', ARGV[3], 'sluice:holder', ARGV[4],
       'sluice:since', string.format('%.0f', server_time()))
  call('PEXPIRE', lock, ARGV[2])
  if ARGV[5] ~= '' then
    call('LREM', KEYS[3], 1, ARGV[5])
  end
  return token
end
local request = call('HGET', lock, 'sluice:request')
if request == ARGV[3] then
  call('PEXPIRE', lock, ARGV[2])
  return tonumber(call('GET', KEYS[2]))  -- no later token: this hold is in the way
end
if not request then
-- include lock/hold/parts.lua is_lock
  if not is_lock(lock, 64) then
    return redis.error_reply(no_lock)
  end
end
-- include lock/mutex/mutex.lua has_looked
local time = 0
if ARGV[5] ~= '' then
  if not call('LPOS', KEYS[3], ARGV[5]) then
    call('RPUSH', KEYS[3], ARGV[5])
  end
  call('PEXPIRE', KEYS[3], 120000)  -- waiters look again within 30 s
  time = server_time()
  has_looked(lock, ARGV[3])
end
return {call('PTTL', lock), time, request and 0 or 1}

-- script release
-- End a hold and hand the lock over; or end the wait for one.
-- KEYS[1] lock hash   KEYS[2] fencing counter   KEYS[3] queue of tickets
-- ARGV[1] request id   ARGV[2] channel   ARGV[3] most hand-overs in a row
-- ARGV[4] ticket to be taken out of the queue; empty: none
-- Reply: 1 ended; 0 there was no such hold.
local call, lock = redis.call, KEYS[1]
if ARGV[4] ~= '' then
-- include lock/mutex/mutex.lua look_after
  if call('LREM', KEYS[3], 0, ARGV[4]) > 0 then
    hand_watch_on(KEYS[1], KEYS[3], ARGV[4])
  end
end
if call('HGET', lock, 'sluice:request') ~= ARGV[1] then
  return 0
end
if call('EXISTS', KEYS[3]) == 0 then  -- no process waits: as hand_over, without its preparations
  call('DEL', lock)
  call('PUBLISH', ARGV[2], '0')
  return 1
end
-- include lock/hold/parts.lua next_token
-- include lock/hold/parts.lua server_time
-- include lock/mutex/mutex.lua look_after
-- include lock/mutex/mutex.lua hand_over
hand_over(ARGV[2], tonumber(ARGV[3]))
return 1

-- script pass
-- The end of a process's turn: the next process in the queue gets the lock, and this one joins the
-- end of the queue. When no process waits, this one keeps the lock for another turn.
-- KEYS[1] lock hash   KEYS[2] fencing counter   KEYS[3] queue of tickets
-- ARGV[1] request id of the hold   ARGV[2] channel   ARGV[3] most hand-overs in a row
-- ARGV[4] lease, ms   ARGV[5] tokens for the next turn   ARGV[6] ticket, of another request
-- ARGV[7] the last token of the turn that ends
-- Reply: an integer: kept, the last of its new tokens; 0 the hold is gone;
--        {ms, time, 0}: handed over, and in the queue; as lock/mutex/acquire.
local call = redis.call
-- include lock/hold/parts.lua next_token
-- include lock/hold/parts.lua server_time
-- include lock/mutex/mutex.lua look_after
-- include lock/mutex/mutex.lua hand_over
if call('HGET', KEYS[1], 'sluice:request') ~= ARGV[1] then
  return 0
end
-- A copy whose first has kept the lock does nothing: late, it would end a turn that goes on.
local last = tonumber(call('GET', KEYS[2])) or 0
if last >= ARGV[7] + ARGV[5] then
  return last
end
if call('EXISTS', KEYS[3]) == 0 then
  local passed = call('HINCRBY', KEYS[1], 'sluice:handoffs', 1)
  local others = passed >= tonumber(ARGV[3]) and call('PUBSUB', 'NUMSUB', ARGV[2])[2] or 0
  if tonumber(others) == 0 then
    call('PEXPIRE', KEYS[1], ARGV[4])
    return next_token(KEYS[2], tonumber(ARGV[5]))
  end
end
call('RPUSH', KEYS[3], ARGV[6])
call('PEXPIRE', KEYS[3], 120000)
hand_over(ARGV[2], tonumber(ARGV[3]))
return {call('PTTL', KEYS[1]), server_time(), 0}

-- script force_release
-- End whatever hold there is, without asking its owner, and hand the lock over.
-- KEYS[1] lock hash   KEYS[2] fencing counter   KEYS[3] queue of tickets
-- ARGV[1] channel   ARGV[2] most hand-overs in a row
-- Reply: 1 ended; 0 it was free.
-- include lock/hold/parts.lua next_token
-- include lock/hold/parts.lua server_time
-- include lock/mutex/mutex.lua look_after
-- include lock/mutex/mutex.lua hand_over
-- include lock/hold/parts.lua is_lock
if redis.call('EXISTS', KEYS[1]) == 0 then
  return 0
end
if not is_lock(KEYS[1]) then
  return redis.error_reply(no_lock)
end
hand_over(ARGV[1], tonumber(ARGV[2]))
return 1

-- part hand_over
-- Ends the hold of a lock and gives the lock to the first waiter that lives. Without one it is
-- free.
-- KEYS[first], 1 where it is not given: lock hash   the next: fencing counter
-- the one after that: queue of tickets: "request lease claim inbox owner holder", times in ms
--
-- A process whose inbox no connection listens to is dead: PUBLISH says how many heard. A process
-- that hears but stands still has `claim` ms to say that it has taken over; then two others look. A
-- waiter that was told to look by the last hand-over, and has not looked yet, will still do so, and
-- looks again when it sees a claim. The field sluice:looks is "request till" of the last waiter
-- told, until it looks. So a hand-over tells one waiter, not two.
-- REQUIRES: part look_after
-- After `bound` hand-overs in a row, programs that are not ours get their chance if they listen to
-- `channel`: the lock is free then, and the first of the queue comes back 10 ms later.
local function hand_over(channel, bound, first)
  local call = redis.call
  local at = first or 1
  local lock, counter, queue = KEYS[at], KEYS[at + 1], KEYS[at + 2]
  local passed, looks = unpack(call('HMGET', lock, 'sluice:handoffs', 'sluice:looks'))
  passed = tonumber(passed or 0)
  local told, till = string.match(looks or '', '^(%S+) (%d+)')
  local ticket = call('LPOP', queue)
  while ticket do
    local request, lease, claim, inbox, owner, holder =
      string.match(ticket, '^(%S+) (%d+) (%d+) (%S+) (%S+) (.*)$')
    if passed >= bound then
      passed = 0
      if call('PUBLISH', channel, '0') > 0 then
        call('DEL', lock)
        if call('PUBLISH', inbox, 'look ' .. request .. ' 10') > 0 then
          call('LPUSH', queue, ticket)
        end
        return
      end
    end
    local token = next_token(counter, 1)
    local grant = string.format('grant %s %.0f %.0f %s', request, token, server_time(), claim)
    if call('PUBLISH', inbox, grant) > 0 then
      call('DEL', lock)
      call('HSET', lock, owner, 1, 'sluice:request', request, 'sluice:holder', holder,
           'sluice:since', string.format('%.0f', server_time()), 'sluice:handoffs', passed + 1)
      call('PEXPIRE', lock, claim)
      local now = server_time()
      local last, after = have_it_looked_at(queue, claim, tonumber(till or 0) > now and told)
      looks = last and string.format('%s %.0f', last, now + after) or looks
      if looks then
        call('HSET', lock, 'sluice:looks', looks)
      end
      return
    end
    ticket = call('LPOP', queue)
  end
  call('DEL', lock)
  call('PUBLISH', channel, '0')
end

-- part look_after
-- Asks the first two processes that wait to look: one when `ms` are over, and half a second later
-- the other, should that one stand still too. A process that does not hear is dead, and leaves.
-- `told`: a request that need not be told again. Returns the request that was told last, and in how
-- many ms it looks; nil: none was told.
local function have_it_looked_at(queue, ms, told)
  local last, after
  local place = 0
  while place < 2 do
    local ticket = redis.call('LINDEX', queue, place)
    if not ticket then
      break
    end
    local request, inbox = string.match(ticket, '^(%S+) %d+ %d+ (%S+)')
    if request == told then
      place = place + 1
    elseif redis.call('PUBLISH', inbox, 'look ' .. request .. ' ' .. ms + 500 * place) > 0 then
      last, after = request, ms + 500 * place
      place = place + 1
    else
      redis.call('LREM', queue, 1, ticket)
    end
  end
  return last, after
end

-- A waiter that leaves the queue may have been told to look, and the hold in the way may be one
-- that its process never takes up: others look instead.
local function hand_watch_on(lock, queue, ticket)
  local left = redis.call('PTTL', lock)
  if left >= 0 and left <= tonumber(string.match(ticket, '^%S+ %d+ (%d+)')) then
    have_it_looked_at(queue, left)
  end
end

-- part has_looked
-- This waiter was told to look, and has looked now: the next hand-over may tell it again.
local function has_looked(lock, request)
  local looks = redis.call('HGET', lock, 'sluice:looks')
  if looks and string.match(looks, '^%S+') == request then
    redis.call('HDEL', lock, 'sluice:looks')
  end
end
