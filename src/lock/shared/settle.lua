-- Which waiter of a read-write lock is next. Waiters stand in two lists of tickets
--   "KIND REQUEST CLAIM INBOX OWNER HOLDER"
-- and hear in their process's inbox that they are in. A process that does not hear is dead: PUBLISH
-- says how many heard. One that hears but stands still has CLAIM ms to say that it took over; then
-- the first of those that wait looks, and a little later the first of another process.
--
-- After readers the next writer has its turn. After a writer all readers together have theirs; but
-- where writers go first, the next writer, until `most_past` of them have gone past the readers.
-- (Where readers go first, so many newcomers join the readers that are in: lock/shared/acquire.)
-- After `most_handed` hand-overs in a row programs that are not ours, if any listen to the channel,
-- get their chance: the lock is free for 10 ms. Both are counted in sluice:turn = "turn HANDED
-- PAST".
-- KEYS[1] lock hash   KEYS[2] fencing counter   KEYS[3] writers   KEYS[4] readers
-- ARGV[1] prefix of hold keys   ARGV[2] channel   ARGV[3] who goes first: writers or readers
-- ARGV[4] most that go past the others   ARGV[5] most hand-overs in a row
local writers_first = ARGV[3] == 'writers'
local most_past, most_handed = tonumber(ARGV[4]), tonumber(ARGV[5])
local most_at_once = 1000  -- readers that one script lets in
local time_between_looks = 500
local let_in = {}  -- the inboxes of the processes that this script has let in

local function read_turn()
  local turn = call('HGET', KEYS[1], 'sluice:turn') or 'turn 0 0'
  local handed, past = string.match(turn, '(%d+) (%d+)')
  return tonumber(handed), tonumber(past)
end

local function note_turn(handed, past)
  call('HSET', KEYS[1], 'sluice:turn', 'turn ' .. handed .. ' ' .. past)
end

local function is_heard(ticket)
  local inbox = string.match(ticket, '^%a %S+ %d+ (%S+)')
  return tonumber(call('PUBSUB', 'NUMSUB', inbox)[2]) > 0
end

-- Whether a writer that lives waits.
local function writer_waits()
  local ticket = call('LINDEX', KEYS[3], 0)
  while ticket and not is_heard(ticket) do
    call('LPOP', KEYS[3])
    ticket = call('LINDEX', KEYS[3], 0)
  end
  return ticket and true
end

-- Tells the first of a queue that lives to look in so many ms. False: there is none.
local function call_first(queue, ms)
  local ticket = call('LINDEX', queue, 0)
  while ticket do
    local request, inbox = string.match(ticket, '^%a (%S+) %d+ (%S+)')
    if call('PUBLISH', inbox, 'look ' .. request .. ' ' .. ms) > 0 then
      return true
    end
    call('LPOP', queue)
    ticket = call('LINDEX', queue, 0)
  end
  return false
end

-- Asks the first of each of so many processes to look: one when `ms` are over, the next later,
-- should that one stand still too. Processes that were just let in, and may be the cause, are asked
-- only where there is no other.
local function have_it_looked_at(ms, processes)
  local asked, last_resort = {}, nil
  for _, queue in ipairs({KEYS[3], KEYS[4]}) do
    local place = 0
    while place < 16 and processes > 0 do
      local ticket = call('LINDEX', queue, place)
      if not ticket then
        break
      end
      local request, inbox = string.match(ticket, '^%a (%S+) %d+ (%S+)')
      if asked[inbox] or let_in[inbox] then
        last_resort = last_resort or {inbox, request}
        place = place + 1
      elseif call('PUBLISH', inbox, 'look ' .. request .. ' ' .. ms) > 0 then
        asked[inbox] = true
        ms = ms + time_between_looks
        processes = processes - 1
        place = place + 1
      else
        call('LREM', queue, 1, ticket)
      end
    end
  end
  if last_resort and not next(asked) then
    call('PUBLISH', last_resort[1], 'look ' .. last_resort[2] .. ' ' .. ms)
  end
end

-- Writes a hold that nothing stands in the way of.
local function take(kind, request, owner, holder, ms)
  call('HSETNX', KEYS[1], 'mode', kind == 'r' and 'read' or 'write')
  note_hold(KEYS[1], request, kind, 1, string.format('%.0f', server_time()), owner, holder)
  enter(KEYS[1], ARGV[1], kind, owner, 1, ms)
end

-- Lets in whose ticket it is, for how many ms; nil: it is dead.
local function grant(ticket)
  local kind, request, claim, inbox, owner, holder =
    string.match(ticket, '^(%a) (%S+) (%d+) (%S+) (%S+) (.*)$')
  local token = kind == 'w' and next_token(KEYS[2], 1) or tonumber(call('GET', KEYS[2]) or 0)
  local message = string.format('grant %s %.0f %.0f %s', request, token, server_time(), claim)
  if call('PUBLISH', inbox, message) > 0 then
    take(kind, request, owner, holder, tonumber(claim))
    let_in[inbox] = true
    return tonumber(claim)
  end
end

-- Lets all readers in that wait, for how many ms; nil: there were none.
local function admit_readers()
  local longest
  for _ = 1, most_at_once do
    local ticket = call('LPOP', KEYS[4])
    if not ticket then
      return longest
    end
    local claim = grant(ticket)
    longest = claim and math.max(claim, longest or 0) or longest
  end
  call_first(KEYS[4], 0)
  return longest
end

-- Gives the lock, which is free, to the next waiter. Without one it publishes `payload`: 0 after
-- readers, else 1.
local function pass_on(payload, handed, past)
  while true do
    local writers, readers = call('LLEN', KEYS[3]), call('LLEN', KEYS[4])
    if handed >= most_handed or writers + readers == 0 then
      handed = 0
      if call('PUBLISH', ARGV[2], payload) > 0 or writers + readers == 0 then
        return call_first(KEYS[3], 10) or call_first(KEYS[4], 10)
      end
    end
    local claim
    local writers_turn = readers == 0 or payload == 0 or writers_first and past < most_past
    if writers > 0 and writers_turn then
      claim = grant(call('LPOP', KEYS[3]))
      past = readers > 0 and past + 1 or 0
    else
      claim = admit_readers()
      past = 0
      if claim then
        call('PUBLISH', ARGV[2], 1)  -- readers that are not ours may come too
      end
    end
    if claim then
      note_turn(handed + 1, past)
      return have_it_looked_at(claim, 2)
    end
  end
end

-- A waiter has left: perhaps others need not wait any more.
local function settle()
  local mode = call('HGET', KEYS[1], 'mode')
  if not mode and call('EXISTS', KEYS[3], KEYS[4]) > 0 then
    pass_on(1, 0, 0)
  elseif mode == 'read' and not writer_waits() then
    admit_readers()
  end
end
