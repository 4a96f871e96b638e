-- A lock that is free goes to the first that waits and runs.
-- KEYS[1] lock hash   KEYS[2..4] see lock/fair/queue   KEYS[5] fencing counter
--
-- A waiter of ours is sent the hold, for `claim` ms, in which it has to say that it took over. One
-- of Redisson's is told that the lock is free, and has `time_to_come`; the field sluice:told of the
-- tickets says "till deadline was owner" then: until when it has, its deadline now, and what that
-- was before. The lock stays free meanwhile.
local time_to_come = 1500

-- All waiters of a process leave, and those behind them move up: O(n). The others go to the end in
-- their order, before all that stood there is taken away: the queue keeps its time to live.
local function drop(inbox)
  local call = redis.call
  local gone, stay = 0, {}
  local owners = call('LRANGE', KEYS[2], 0, -1)
  for _, owner in ipairs(owners) do
    local ticket = call('HGET', KEYS[4], owner)
    if ticket and inbox_of(ticket) == inbox then
      call('ZREM', KEYS[3], owner)
      call('HDEL', KEYS[4], owner)
      gone = gone + 1
    else
      call('ZADD', KEYS[3], 'XX', 'INCR', -patience * gone, owner)
      stay[#stay + 1] = owner
    end
  end
  for first = 1, #stay, 1000 do
    call('RPUSH', KEYS[2], unpack(stay, first, math.min(first + 999, #stay)))
  end
  for _ = 1, #owners do
    call('LPOP', KEYS[2])
  end
  forget_process(KEYS[4], inbox)
end

-- The first waiter leaves the queue.
local function take_turn(owner)
  leave(owner)
  redis.call('HDEL', KEYS[4], 'sluice:told')
end

-- True: its process runs, and it is in.
local function grant(owner, ticket)
  local request, claim, inbox, holder = string.match(ticket, '^(%S+) (%d+) %d+ (%S+) (.*)$')
  if not request then
    take_turn(owner)
    return false
  end
  if not runs(KEYS[4], inbox) then
    drop(inbox)
    return false
  end
  local token = next_token(KEYS[5], 1)
  take_turn(owner)
  let_in(owner, request, holder, claim)
  if redis.call('EXISTS', KEYS[2]) == 1 then
    expect_claim(KEYS[4], inbox, claim)
  end
  redis.call('PUBLISH', inbox, string.format('grant %s %.0f %.0f %s', request, token,
                                             server_time(), claim))
  return true
end

-- Until when there is time for a waiter of Redisson to come; nil: it is gone from the queue.
local function call_stranger(channel, owner)
  local call = redis.call
  local now = server_time()
  local deadline = tonumber(call('ZSCORE', KEYS[3], owner)) or now
  local till, at, was, whom =
    string.match(call('HGET', KEYS[4], 'sluice:told') or '', '^(%S+) (%S+) (%S+) (.*)$')
  local told = whom == owner and tonumber(at) == deadline
  if told and tonumber(till) > now then
    return tonumber(till)
  end
  local heard = not told and tell(channel .. ':' .. owner, '0')
  if told or (not heard and deadline <= now) then
    call('LPOP', KEYS[2])
    call('ZREM', KEYS[3], owner)
    call('HDEL', KEYS[4], 'sluice:told')
    local early = told and tonumber(was) - now or 0
    if early > 0 then
      move_up(-1, early)
    end
    return nil
  end
  till = now + time_to_come
  local moved = deadline
  if heard and deadline <= now then
    moved = till  -- or it would drop itself
  elseif not heard then
    moved = math.min(deadline, till)
    till = moved
  end
  if moved ~= deadline then
    call('ZADD', KEYS[3], moved, owner)
  end
  call('HSET', KEYS[4], 'sluice:told',
       string.format('%.0f %.0f %.0f %s', till, moved, deadline, owner))
  if call('PTTL', KEYS[4]) < tonumber(queue_kept) then
    call('PEXPIRE', KEYS[4], queue_kept)
  end
  return till
end

-- REQUIRES: the lock is free. True: no waiter is before `asker`; if that is nil: no waiter at all.
-- False, and a time: a waiter of Redisson's may come until then. `came`: of an asker that may have
-- lost its place, to the claim of a grant that it did not hear of.
local function hand_over(channel, asker, came)
  while true do
    local first = redis.call('LINDEX', KEYS[2], 0)
    if not first then
      forget_looks()
      return true
    elseif first == asker then
      return true
    end
    local ticket = redis.call('HGET', KEYS[4], first)
    local theirs = came and ticket and tonumber(string.match(ticket, '^%S+ %d+ (%d+)'))
    if theirs and theirs > came then
      return true
    end
    local till = not ticket and call_stranger(channel, first)
    if till or ticket and grant(first, ticket) then
      return false, till
    end
  end
end
