-- The scripts of Mutex.
-- KEYS, of all of them: KEYS[1] lock hash   KEYS[2] fencing counter   KEYS[3] queue of tickets
-- KEYS[4] looks (see lock/wait/queue)

-- script acquire
-- Take a free lock, or wait for it in the queue. An owner that has it already is refused like
-- any other: re-entry is lock/mutex/recount.
-- ARGV[1] owner   ARGV[2] lease, ms   ARGV[3] request id   ARGV[4] holder, for people
-- ARGV[5] ticket (see lock/mutex/hand_over); empty: do not wait
-- Reply: an integer, the token: held by this request, now or since an earlier copy of it or a
--        hand-over;
--        {ms, time, foreign}: refused. When to look again (where we do not wait: what is left of
--        the hold in the way, -1: it has no end; or for how long the lock is left to others); the
--        server's time in ms, 0 where we do not wait; 1: the holder knows no queue.
local call, lock = redis.call, KEYS[1]
local there, request, held, chance_left = call('EXISTS', lock, KEYS[4]), nil, false, 0
if there > 0 then
  request = redis.pcall('HGET', lock, 'sluice:request')
  held = request or there == 2 or call('EXISTS', lock) == 1
  if not held then
-- include lock/hold/parts.lua server_time
-- include lock/wait/queue.lua strangers
    chance_left = left_to_strangers(KEYS[4])
  end
end
if not held and chance_left == 0 then
  -- As next_token(KEYS[2], 1), without making functions: that takes as long as all the rest.
  local time = call('TIME')
  local token = tonumber(time[1]) * 1000000 + tonumber(time[2]) + 1
  local counted = call('SET', KEYS[2], token, 'PX', '90000000', 'GET')
  local last = tonumber(counted or 0)
  if not last or last >= token then
-- include lock/hold/parts.lua server_time
-- include lock/hold/parts.lua next_token
    call('SET', KEYS[2], counted)
    token = next_token(KEYS[2], 1)
  end
  call('HSET', lock, ARGV[1], '1', 'sluice:request', ARGV[3], 'sluice:holder', ARGV[4])
  call('PEXPIRE', lock, ARGV[2])
  if ARGV[5] ~= '' then
-- include lock/wait/queue.lua leaving
    leave_queue(KEYS[3], KEYS[4], ARGV[5])
  end
  return token
end
-- include lock/hold/parts.lua server_time
if request == ARGV[3] then
-- include lock/hold/parts.lua next_token
  call('PEXPIRE', lock, ARGV[2])
  return tonumber(call('GET', KEYS[2])) or next_token(KEYS[2], 1)  -- this hold is the latest
end
if held and type(request) ~= 'string' then
-- include lock/hold/parts.lua denied
-- include lock/hold/parts.lua is_lock
  if type(request) == 'table' or not is_lock(lock, 64) then
    return redis.error_reply(denied(request, 'HGET', no_lock))
  end
end
local left = held and call('PTTL', lock) or chance_left
local foreign = held and not request and 1 or 0
if ARGV[5] == '' then
  return {left, 0, foreign}
end
-- include lock/wait/queue.lua inbox
-- include lock/wait/queue.lua processes
-- include lock/wait/queue.lua list
-- include lock/wait/queue.lua tickets
return {stand(KEYS[3], KEYS[4], ARGV[5], left), server_time(), foreign}

-- script release
-- End a hold and hand the lock over; or end the wait for one.
-- ARGV[1] request id   ARGV[2] channel   ARGV[3] most hand-overs in a row
-- ARGV[4] ticket to be taken out of the queue; empty: none
-- Reply: 1 ended; 0 there was no such hold.
local call, lock = redis.call, KEYS[1]
if ARGV[4] ~= '' then
-- include lock/wait/queue.lua leaving
  leave_queue(KEYS[3], KEYS[4], ARGV[4])
end
if call('HGET', lock, 'sluice:request') ~= ARGV[1] then
  return 0
end
local tickets = call('LRANGE', KEYS[3], '0', '1')
local ticket = tickets[1]
if not ticket then  -- as hand_over, without its preparations
  call('DEL', lock, KEYS[4])
  if call('PUBLISH', ARGV[2], '0') > 0 then
-- include lock/hold/parts.lua server_time
-- include lock/wait/queue.lua strangers
    leave_to_strangers(KEYS[4], ARGV[2])
  end
  return 1
end
-- The usual: the first process that waits runs, and nobody listens to the channel. It is hand_over,
-- without its functions, and with numbers that stay texts: Redis writes a number slowly.
local request, claim, inbox, owner, holder =
  string.match(ticket, '^(%S+) %d+ (%d+) (sluice:inbox:%S+) (%S+) (.*)$')
local heard = inbox and call('PUBSUB', 'NUMSUB', inbox, ARGV[2])
if heard and heard[2] > 0 and heard[4] == 0 then
  local till = tonumber(call('HGET', KEYS[4], inbox) or nil)
  local time = call('TIME')
  local now = time[1] * 1000000 + time[2]
  if till and till * 1000 >= now then
    if tickets[2] then
      call('DEL', lock)  -- first: what comes after it is not refused for want of memory
      call('LPOP', KEYS[3])
    else
      call('DEL', lock, KEYS[3], KEYS[4])
    end
    local token = time[1] .. string.sub('00000' .. time[2], -6)
    local now_ms = string.sub(token, 1, -4)
    local counted = call('SET', KEYS[2], token, 'PX', '90000000', 'GET')
    local last = tonumber(counted or 0)
    if not last or last >= now then
-- include lock/hold/parts.lua server_time
-- include lock/hold/parts.lua next_token
      call('SET', KEYS[2], counted)
      token = string.format('%.0f', next_token(KEYS[2], 1))
    end
    call('HSET', lock, owner, '1', 'sluice:request', request, 'sluice:holder', holder)
    call('PEXPIRE', lock, claim)
    call('PUBLISH', inbox, 'grant ' .. request .. ' ' .. token .. ' ' .. now_ms .. ' ' .. claim)
    local claimed = now_ms + math.max(claim, 1500)  -- as expect_claim
    if tickets[2] and till > claimed then
      call('HSET', KEYS[4], inbox, claimed)
    end
    return 1
  end
end
-- include lock/hold/parts.lua server_time
-- include lock/hold/parts.lua next_token
-- include lock/wait/queue.lua inbox
-- include lock/wait/queue.lua strangers
-- include lock/wait/queue.lua processes
-- include lock/wait/queue.lua list
-- include lock/wait/queue.lua tickets
-- include lock/mutex/mutex.lua grant
-- include lock/mutex/mutex.lua hand_over
hand_over(ARGV[2], tonumber(ARGV[3]))
return 1

-- script pass
-- The end of a process's turn: the next process in the queue gets the lock, and this one joins the
-- end of the queue. When no process waits, not even one that is not ours, this one keeps the lock
-- for another turn.
-- ARGV[1] request id of the hold   ARGV[2] channel   ARGV[3] most hand-overs in a row
-- ARGV[4] lease, ms   ARGV[5] tokens for the next turn   ARGV[6] ticket, of another request
-- ARGV[7] the last token of the turn that ends
-- Reply: an integer: kept, the last of its new tokens; 0 the hold is gone;
--        {ms, time, 0}: handed over, and in the queue; as lock/mutex/acquire.
local call = redis.call
-- include lock/hold/parts.lua server_time
-- include lock/hold/parts.lua next_token
-- include lock/wait/queue.lua inbox
-- include lock/wait/queue.lua strangers
-- include lock/wait/queue.lua processes
-- include lock/wait/queue.lua list
-- include lock/wait/queue.lua tickets
-- include lock/mutex/mutex.lua grant
-- include lock/mutex/mutex.lua hand_over
if call('HGET', KEYS[1], 'sluice:request') ~= ARGV[1] then
  return 0
end
-- A copy whose first has kept the lock does nothing: late, it would end a turn that goes on.
local last = tonumber(call('GET', KEYS[2])) or 0
if last >= ARGV[7] + ARGV[5] then
  return last
end
local bound = tonumber(ARGV[3])
if call('EXISTS', KEYS[3]) == 0 then
  if strangers(ARGV[2]) <= 0 then
    call('HDEL', KEYS[1], 'sluice:since')
    call('PEXPIRE', KEYS[1], ARGV[4])
    return next_token(KEYS[2], tonumber(ARGV[5]))
  end
  bound = 0
end
call('RPUSH', KEYS[3], ARGV[6])
call('PEXPIRE', KEYS[3], queue_kept)
promise(KEYS[4], inbox_of(ARGV[6]), grace)  -- it has not looked while it held
hand_over(ARGV[2], bound)
local left = call('PTTL', KEYS[1])
if left == -2 then
  left = left_to_strangers(KEYS[4])
end
return {next_look(KEYS[3], KEYS[4], ARGV[6], left), server_time(), 0}

-- script force_release
-- End whatever hold there is, without asking its owner, and hand the lock over.
-- KEYS[5] the answer to an earlier copy
-- ARGV[1] channel   ARGV[2] most hand-overs in a row
-- Reply: 1 ended; 0 it was free.
-- include lock/hold/parts.lua once
-- include lock/hold/parts.lua server_time
-- include lock/hold/parts.lua next_token
-- include lock/wait/queue.lua inbox
-- include lock/wait/queue.lua strangers
-- include lock/wait/queue.lua processes
-- include lock/wait/queue.lua list
-- include lock/wait/queue.lua tickets
-- include lock/mutex/mutex.lua grant
-- include lock/mutex/mutex.lua hand_over
-- include lock/hold/parts.lua denied
-- include lock/hold/parts.lua is_lock
local before = answered()
if before then
  return before
end
if redis.call('EXISTS', KEYS[1]) == 0 then
  return answer_once(0)
end
if not is_lock(KEYS[1]) then
  return redis.error_reply(no_lock)
end
hand_over(ARGV[1], tonumber(ARGV[2]))
return answer_once(1)

-- part grant
-- The first ticket of a queue gets the lock, whatever hold there is, and leaves. A ticket is
-- "request lease claim inbox owner holder", times in ms. Its process has `claim` ms to say that it
-- has taken over.
-- KEYS[at] lock hash   the next: fencing counter, queue, looks
-- `waiting`: how many tickets there are   `passed`: how many hand-overs there were in a row
-- REQUIRES: part next_token
local function grant(at, ticket, waiting, passed)
  local call, lock, queue = redis.call, KEYS[at], KEYS[at + 2]
  local request, claim, inbox, owner, holder =
    string.match(ticket, '^(%S+) %d+ (%d+) (%S+) (%S+) (.*)$')
  -- DEL first: what comes after it is not refused for want of memory.
  if waiting == 1 then
    call('DEL', lock, queue, KEYS[at + 3])
  else
    call('DEL', lock)
    call('LPOP', queue)
  end
  local token = next_token(KEYS[at + 1], 1)
  call('HSET', lock, owner, '1', 'sluice:request', request, 'sluice:holder', holder,
       'sluice:handoffs', passed + 1)
  call('PEXPIRE', lock, claim)
  call('PUBLISH', inbox, string.format('grant %s %.0f %.0f %s', request, token, server_time(),
                                       claim))
end

-- part hand_over
-- Ends the hold of a lock and gives the lock to the first process that waits and runs. Without one
-- it is free.
-- KEYS[first], 1 where it is not given: lock hash   the next: fencing counter, queue, looks
-- REQUIRES: parts tickets, strangers and grant
-- Programs that are not ours, if they listen to `channel`, have their chance when each that waits
-- here has had its turn, and after `bound` hand-overs in a row at the latest: the lock is free
-- then, and the first of the queue comes back when that is over.
local function hand_over(channel, bound, first)
  local call = redis.call
  local at = first or 1
  local lock, queue, looks = KEYS[at], KEYS[at + 2], KEYS[at + 3]
  local passed = tonumber(call('HGET', lock, 'sluice:handoffs') or 0)
  call('DEL', lock)  -- first of all: what comes after it is not refused for want of memory
  local ticket = first_ticket(queue, looks)
  if not ticket then
    call('DEL', looks)
    if call('PUBLISH', channel, '0') > 0 then
      leave_to_strangers(looks, channel)
    end
    return
  end
  local request, claim, inbox = string.match(ticket, '^(%S+) %d+ (%d+) (%S+)')
  local waiting = call('LLEN', queue)
  if leave_to_strangers(looks, channel, passed, waiting, bound) then
    call('PUBLISH', channel, '0')
    call('PUBLISH', inbox, 'look ' .. request .. ' ' .. chance)
    return
  end
  grant(at, ticket, waiting, passed)
  if waiting > 1 then
    expect_claim(looks, inbox, tonumber(claim))
  end
end
