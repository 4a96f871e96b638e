-- A lock that is free goes to the first that waits and lives.
-- KEYS[1] lock hash   KEYS[2..4] see lock/fair/queue   KEYS[5] fencing counter
--
-- A waiter of ours is sent the hold, for `claim` ms, in which it has to say that it took over. If
-- it does not hear (PUBLISH says how many do) it is dead. One of Redisson's is told that the lock
-- is free, and has `time_to_come`; the field sluice:told of the tickets says "till deadline was
-- owner" then: until when it has, its deadline now, and what that was before. The lock stays free
-- meanwhile. In either case two processes look when that time is over: one, and a little later
-- another.
local time_to_come = 1500
local time_between_looks = 500

-- Asks the first of ours in each of so many processes to look: one when `ms` are over, the next
-- later, should that one stand still too. The process of `inbox`, which may be the cause, is asked
-- only where there is no other. A process that does not hear is dead, and leaves.
local function have_it_looked_at(inbox, ms, processes)
  local call = redis.call
  local asked, last_resort = {[inbox] = true}, nil
  local place = 0
  while place < 16 and processes > 0 do
    local waiter = call('LINDEX', KEYS[2], place)
    if not waiter then
      break
    end
    local request, at = string.match(call('HGET', KEYS[4], waiter) or '', '^(%S+) %d+ %d+ (%S+)')
    if not request or asked[at] then
      last_resort = last_resort or request
      place = place + 1
    elseif call('PUBLISH', at, 'look ' .. request .. ' ' .. ms + 1) > 0 then
      asked[at] = true
      ms = ms + time_between_looks
      processes = processes - 1
      place = place + 1
    else
      leave(waiter)
    end
  end
  if last_resort and next(asked) == inbox and not next(asked, inbox) then
    call('PUBLISH', inbox, 'look ' .. last_resort .. ' ' .. ms + 1)
  end
end

-- The first waiter leaves the queue.
local function take_turn(owner)
  leave(owner)
  redis.call('HDEL', KEYS[4], 'sluice:told')
end

local function let_in(owner, request, holder, ttl)
  redis.call('HSET', KEYS[1], owner, 1, 'sluice:request', request, 'sluice:holder', holder,
             'sluice:since', string.format('%.0f', server_time()))
  redis.call('PEXPIRE', KEYS[1], ttl)
end

-- True: it was heard, and is in.
local function grant(owner, ticket)
  local request, claim, inbox, holder = string.match(ticket, '^(%S+) (%d+) %d+ (%S+) (.*)$')
  local heard = false
  if request then
    local token = next_token(KEYS[5], 1)
    local message = string.format('grant %s %.0f %.0f %s', request, token, server_time(), claim)
    heard = redis.call('PUBLISH', inbox, message) > 0
  end
  take_turn(owner)
  if heard then
    let_in(owner, request, holder, claim)
    have_it_looked_at(inbox, claim, 2)
  end
  return heard
end

-- Until when there is time for it to come; nil: it is gone from the queue.
local function tell(channel, owner)
  local call = redis.call
  local now = server_time()
  local deadline = tonumber(call('ZSCORE', KEYS[3], owner)) or now
  local till, at, was, whom =
    string.match(call('HGET', KEYS[4], 'sluice:told') or '', '^(%S+) (%S+) (%S+) (.*)$')
  local told = whom == owner and tonumber(at) == deadline
  if told and tonumber(till) > now then
    return tonumber(till)
  end
  local heard = not told and call('PUBLISH', channel .. ':' .. owner, '0') > 0
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
    call('ZADD', KEYS[3], string.format('%.0f', moved), owner)
  end
  call('HSET', KEYS[4], 'sluice:told',
       string.format('%.0f %.0f %.0f %s', till, moved, deadline, owner))
  call('PEXPIRE', KEYS[4], 120000)
  have_it_looked_at('', till - now, 2)
  return till
end

-- REQUIRES: the lock is free. True: no waiter is before `asker`; if that is nil: no waiter at all.
-- False, and a time: a waiter of Redisson's may come until then.
local function hand_over(channel, asker)
  while true do
    local first = redis.call('LINDEX', KEYS[2], 0)
    if not first or first == asker then
      return true
    end
    local ticket = redis.call('HGET', KEYS[4], first)
    local till = not ticket and tell(channel, first)
    if till or ticket and grant(first, ticket) then
      return false, till
    end
  end
end
