-- Those who wait: the list KEYS[3] of tickets "request inbox HOLDER", first come first served:
-- while the head wants more than there is, whoever comes after it waits. A process that nobody
-- hears is dead: PUBLISH and NUMSUB say how many hear. One that hears but stands still has its
-- permits for `claim` ms only, until it says that it has taken over.
--
-- Java programs do not know the queue, and take what they find free. They get their turn: after 16
-- hand-overs, but at most once a second, what comes free stays free for 10 ms. The hash KEYS[5]
-- {passed: hand-overs since, opened: when that was} knows.
local most_passed = 16
local turn = 10
local between_turns = 1000

local function ticket_parts(ticket)
  return string.match(ticket, '^(%S+) (%S+) (.*)$')
end

-- The head looks at once when a Java program publishes, and when the first hold ends. Should it be
-- dead, the first of another process is there: that looks every two seconds.
local function deputy(head_inbox)
  for i = 1, 63 do
    local ticket = call('LINDEX', KEYS[3], i)
    if not ticket then
      return nil
    end
    local request, inbox = ticket_parts(ticket)
    if inbox ~= head_inbox then
      return request, inbox
    end
  end
end

local function tell(inbox, request, ms)
  return call('PUBLISH', inbox, 'look ' .. request .. ' ' .. ms)
end

-- How much is left of the turn of others, ms; 0: it is ours.
local function turn_of_others()
  local opened = tonumber(call('HGET', KEYS[5], 'opened') or 0)
  return math.max(0, opened + turn - server_time())
end

-- Before a hand-over: whether others have their turn from now on.
local function opens_turn()
  local passed, opened = unpack(call('HMGET', KEYS[5], 'passed', 'opened'))
  if tonumber(passed or 0) < most_passed or
     server_time() - tonumber(opened or 0) < between_turns then
    return false
  end
  call('HSET', KEYS[5], 'passed', 0, 'opened', string.format('%.0f', server_time()))
  return true
end

local function count_hand_over()
  call('HINCRBY', KEYS[5], 'passed', 1)
  call('PEXPIRE', KEYS[5], 120000)
end

-- Gives to the heads what there is. `me` is whose question this is, and hears of it by the answer.
-- `moved`: there may be another head than before, who does not know. Returns how many are free
-- then; the ticket of the head, who lives and has to wait, or nil; whether `me` has got what it
-- waited for.
local function serve(me, moved)
  local free = tonumber(call('GET', KEYS[1]) or 0)
  local got = false
  local ticket = call('LINDEX', KEYS[3], 0)
  if ticket and turn_of_others() > 0 then
    return free, ticket, got
  end
  while ticket do
    local request, inbox, holder = ticket_parts(ticket)
    local count, lease, claim = string.match(holder, '^(%d+) (%d+) (%d+)')
    if tonumber(count) > free then
      local hear = 1
      if request ~= me then
        hear = moved and tell(inbox, request, 50) or tonumber(call('PUBSUB', 'NUMSUB', inbox)[2])
      end
      if hear > 0 then
        local next, where = deputy(inbox)
        if moved and next and next ~= me then
          tell(where, next, 2000)
        end
        return free, ticket, got
      end
    elseif request == me then
      take(request, holder, lease)
      free = free - count
      got = true
    elseif opens_turn() then
      if tell(inbox, request, turn) > 0 then
        return free, ticket, got
      end
    elseif call('PUBLISH', inbox, string.format('grant %s 0 %.0f %s', request, server_time(),
                                                claim)) > 0 then
      take(request, holder, claim)
      free = free - count
      count_hand_over()
    end
    call('LPOP', KEYS[3])
    moved = true
    ticket = call('LINDEX', KEYS[3], 0)
  end
  return free, nil, got
end

-- Says to Java programs that there is something.
local function announce(channel, free)
  if free > 0 then
    call('PUBLISH', channel, string.format('%.0f', free))
  end
end
