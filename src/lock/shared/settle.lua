-- Which waiter of a read-write lock is next. Waiters stand in two lines of tickets
--   "KIND REQUEST CLAIM INBOX OWNER HOLDER"
-- and hear in their process's inbox that they are in. A process has CLAIM ms to say that it took
-- over.
--
-- After readers the next writer has its turn. After a writer all readers together have theirs; but
-- where writers go first, the next writer, until `most_past` of them have gone past the readers.
-- (Where readers go first, so many newcomers join the readers that are in: lock/shared/acquire.)
-- Programs that are not ours, if any listen to the channel, have their chance when each that waits
-- here has had its turn, and after `most_handed` hand-overs in a row at the latest: the lock is
-- left to them (lock/wait/queue, part strangers).
-- Both are counted: `turn` of sluice_rw_writing:PREFIX is "HANDED PAST".
-- KEYS[1] lock hash   KEYS[2] fencing counter   KEYS[3] writers   KEYS[4] readers
-- KEYS[5] looks (see lock/wait/queue)   Behind them: sluice_rw_writing, sluice_rw_leases and the
--         first hold key of the owner, for a proxy that moves keys
-- ARGV[1] prefix of hold keys   ARGV[2] channel   ARGV[3] who goes first: writers or readers
-- ARGV[4] most that go past the others   ARGV[5] most hand-overs in a row
local writers_first = ARGV[3] == 'writers'
local most_past, most_handed = tonumber(ARGV[4]), tonumber(ARGV[5])
local most_at_once = 1000  -- readers that one script lets in

local function read_turn()
  local turn = call('HGET', writing_of(ARGV[1]), 'turn') or '0 0'
  local handed, past = string.match(turn, '(%d+) (%d+)')
  return tonumber(handed), tonumber(past)
end

local function note_turn(handed, past)
  call('HSET', writing_of(ARGV[1]), 'turn', handed .. ' ' .. past)
  prolong_key(writing_of(ARGV[1]), math.max(1, call('PTTL', KEYS[1])))
end

-- The first ticket of a queue whose process runs.
local function first_of(queue)
  local ticket = call(range, queue, 0, 0)[1]
  while ticket do
    local inbox = inbox_of(ticket)
    if not inbox then
      remove(queue, ticket)
    elseif runs(KEYS[5], inbox) then
      return ticket
    else
      drop(KEYS[3], KEYS[5], inbox)
      drop(KEYS[4], KEYS[5], inbox)
    end
    ticket = call(range, queue, 0, 0)[1]
  end
end

-- Tells the first of a queue to look in so many ms. Nothing: there is none.
local function call_first(queue, ms)
  local ticket = first_of(queue)
  if ticket then
    local request, inbox = string.match(ticket, '^%a (%S+) %d+ (%S+)')
    call('PUBLISH', inbox, 'look ' .. request .. ' ' .. ms)
    return true
  end
end

-- Writes a hold that nothing stands in the way of. In this order: of what a user may not do wholly
-- nothing stays that neither a release nor the lease ends.
local function take(kind, request, owner, holder, ms)
  local key, prefix = KEYS[1], ARGV[1]
  local is_free = call('HEXISTS', key, 'mode') == 0
  if is_free then
    call('DEL', writing_of(prefix), readers_of(prefix))  -- of holds that were ended from outside
  end
  note_hold(key, prefix, kind, request, 1, server_time(), owner, holder)
  if not is_free then
    return enter(key, prefix, kind, owner, 1, ms)
  end
  call('HSET', key, 'mode', kind == 'r' and 'read' or 'write', field_of(kind, owner), 1)
  call('PEXPIRE', key, ms)
  if kind == 'r' then
    call('SET', hold_key(prefix, owner, 1), 1, 'PX', ms)
  end
  prolong(key, prefix, kind, owner, ms)
end

-- The last. Where it is not known, a new one: it may be smaller than what readers had.
local function last_token()
  return tonumber(call('GET', KEYS[2])) or next_token(KEYS[2], 0)
end

-- Of a hold that is about to begin. A writer has one of its own; so has the first reader of a lock
-- that was free, since a fence could not refuse a writer that sleeps otherwise.
local function token_of_new(kind)
  local is_own = kind == 'w' or call('EXISTS', KEYS[1]) == 0
  return is_own and next_token(KEYS[2], 1) or last_token()
end

-- Nobody waits any more: nobody looks.
local function forget_looks()
  if call('EXISTS', KEYS[3], KEYS[4]) == 0 then
    call('DEL', KEYS[5])
    return true
  end
end

-- Lets the first of a queue in, for how many ms; nil: none waits.
local function grant_first(queue)
  local ticket = first_of(queue)
  if not ticket then
    return nil
  end
  local kind, request, claim, inbox, owner, holder =
    string.match(ticket, '^(%a) (%S+) (%d+) (%S+) (%S+) (.*)$')
  local token = token_of_new(kind)
  remove(queue, ticket)
  take(kind, request, owner, holder, tonumber(claim))
  if not forget_looks() then
    expect_claim(KEYS[5], inbox, claim)
  end
  call('PUBLISH', inbox, string.format('grant %s %.0f %.0f %s', request, token, server_time(),
                                       claim))
  return true
end

-- Lets all readers in that wait.
local function admit_readers()
  for _ = 1, most_at_once do
    if not grant_first(KEYS[4]) then
      return
    end
  end
  call_first(KEYS[4], 0)
end

-- Gives the lock, which is free, to the next waiter. Without one it publishes `payload`: 0 after
-- readers, else 1.
local function pass_on(payload, handed, past)
  local writer, reader = first_of(KEYS[3]), first_of(KEYS[4])
  if not (writer or reader) then
    call('DEL', KEYS[5])
    return call('PUBLISH', ARGV[2], payload) > 0 and leave_to_strangers(KEYS[5], ARGV[2])
  end
  local waiting = call('ZCARD', KEYS[3]) + (reader and 1 or 0)
  if leave_to_strangers(KEYS[5], ARGV[2], handed, waiting, most_handed) then
    call('PUBLISH', ARGV[2], payload)
    return call_first(KEYS[3], chance) or call_first(KEYS[4], chance)
  end
  local writers_turn = not reader or payload == 0 or writers_first and past < most_past
  if writer and writers_turn then
    grant_first(KEYS[3])
    past = reader and past + 1 or 0
  else
    admit_readers()
    past = 0
    call('PUBLISH', ARGV[2], 1)  -- readers that are not ours may come too
  end
  note_turn(handed + 1, past)
end

-- A waiter has left: perhaps others need not wait any more. The key may have become something
-- else, which is nobody's to give: the lock is free where there is none.
local function settle()
  if call('EXISTS', KEYS[1]) == 0 then
    if call('EXISTS', KEYS[3], KEYS[4]) > 0 and left_to_strangers(KEYS[5]) == 0 then
      pass_on(1, 0, 0)
    end
  elseif redis.pcall('HGET', KEYS[1], 'mode') == 'read' and not first_of(KEYS[3]) then
    admit_readers()
  end
end
