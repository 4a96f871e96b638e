-- Processes that wait in a queue on the server, as the scripts of all synchronizers see them. A
-- process has one inbox, whatever it waits for; tickets name it.

-- part inbox
-- Whether a process listens. PUBLISH's own count is of no use: it counts subscribers of patterns.
local function listens(channel)
  return tonumber(redis.call('PUBSUB', 'NUMSUB', channel)[2]) > 0
end

-- False: nobody listens.
local function tell(channel, message)
  if listens(channel) then
    redis.call('PUBLISH', channel, message)
    return true
  end
  return false
end

local function inbox_of(ticket)
  return string.match(ticket, ' (sluice:inbox:%S+)')
end

-- part strangers
-- Programs that are not ours know no queue: they hear of a release in its channel, and ask one to
-- three milliseconds later. Where they listen, a lock that becomes free is left to them for a
-- moment: the field `strangers` of the looks says until when. Processes of ours that listen there
-- listen to CHANNEL:sluice too.
-- REQUIRES: part server_time
local chance = 5  -- ms

-- How long a lock that is free is still left to them, ms.
local function left_to_strangers(looks)
  local till = tonumber(redis.call('HGET', looks, 'strangers') or nil)
  local left = till and till - server_time() or 0
  return left > 0 and left <= chance and left or 0  -- the clock may have been set back
end

local function strangers(channel)
  local listeners = redis.call('PUBSUB', 'NUMSUB', channel, channel .. ':sluice')
  return listeners[2] - listeners[4]
end

-- False: it is not their turn. They have one for so many of ours as wait here for each of them, and
-- after `bound` at the latest. `passed`: how many of ours there were since; nil: enough.
local function leave_to_strangers(looks, channel, passed, waiting, bound)
  local many = (not passed or passed >= math.min(bound, waiting, 1)) and strangers(channel) or 0
  if many <= 0 or passed and passed < math.min(bound, waiting / many) then
    return false
  end
  redis.call('HSET', looks, 'strangers', string.format('%.0f', server_time() + chance))
  if redis.call('PTTL', looks) == -1 then
    redis.call('PEXPIRE', looks, chance)
  end
  return true
end

-- part leaving
-- A ticket leaves a list of tickets. The last one takes the looks with it.
local function leave_queue(queue, looks, ticket)
  if redis.call('LREM', queue, 0, ticket) > 0 and redis.call('EXISTS', queue) == 0 then
    redis.call('DEL', looks)
  end
end

-- part processes
-- A process that waits looks at the lock from time to time, and each look promises the next: the
-- hash `looks` has {inbox: until when, ms}. A process that was sent a grant has its claim's time.
-- One that breaks its promise has stopped, and all its tickets leave at once: it costs the others
-- one claim, however many tickets it has. When it goes on it looks, and queues anew.
--
-- A look that comes soon after a grant may have been sent before the process could hear of it, and
-- be the last: a process with many waits has many looks on their way when it stops. The looks have
-- "INBOX granted", when its latest grant was sent, and a look within `unheard` promises no more
-- than the grant does. The process looks once more when that is over.
--
-- In a cluster the lock may have come to this node a moment ago, by a failover or with its slot,
-- and a process that runs need not have subscribed here yet: it is not heard, and not dead. The
-- looks have "sluice:inbox:node", the node of the last look, and "INBOX heard" for each process
-- that was heard there by its last look. One that was heard at this node and is no more is dead.
-- Another one runs while it keeps its promise: a grant that is sent to it is found by its next
-- look. So that this is within the claim, all processes look about once a second, wherever they
-- stand, and where several waits of one process may be granted, the time in the reply is negative
-- for a process that is not heard: then all of them look.
--
-- The server may stand still itself: then nobody keeps a promise. The field sluice:inbox:due says
-- "DUE TILL CLAIMED", ms: by when the next look is due, 0 where none is. Where a second has passed
-- since and nothing at all has come to this queue, it was the server, as far as it can tell: all
-- are excused till half a second later, TILL, since what they sent meanwhile is there by then. Dead
-- processes cost that once: no look is missed before somebody has looked again. The processes that
-- were sent a grant look by CLAIMED: what comes from others before then does not count for them.
-- REQUIRES: parts inbox and server_time
local queue_kept = '60000'   -- ms: longer than any rest
local most_counted = 30      -- processes before a ticket
local grace = 2000           -- ms, for a look that comes late
local next_waiter_looks = 1500  -- ms: a beat of its process, and the way
local on_its_way = 500       -- ms, of a look that was sent
local unheard = 300          -- ms after a grant: before the next tick of its process
local too_quiet = 1000       -- ms after a look was due: the server was away
local absences = {}          -- of the server, by the looks

local function note_absence(looks, due, till, claimed)
  absences[looks] = {due = due, till = till, claimed = claimed}
  redis.call('HDEL', looks, '')  -- a write that needs no memory: then no other is refused
  redis.call('HSET', looks, 'sluice:inbox:due', string.format('%.0f %.0f %.0f', due, till, claimed))
end

local function absence(looks)
  if not absences[looks] then
    local text = redis.call('HGET', looks, 'sluice:inbox:due') or '0 0'
    local due, till, claimed = string.match(text, '(%d+) (%d+) ?(%d*)')
    due, till, claimed = tonumber(due), tonumber(till), tonumber(claimed) or 0
    absences[looks] = {due = due, till = till, claimed = claimed}
    local now = server_time()
    if due > 0 and due + too_quiet < now then
      note_absence(looks, 0, now + on_its_way, 0)
    elseif due > 0 and due < now then
      -- The first looks within a second; a tenth is more than a look is on its way.
      note_absence(looks, now + (claimed > now and 100 or 1000), till, claimed)
    end
  end
  return absences[looks]
end

local function expect_look(looks, at)
  local known = absence(looks)
  if known.due == 0 or known.due > at then
    note_absence(looks, at, known.till, known.claimed)
  end
end

-- sharded: local function this_node()
-- sharded:   local id = redis.pcall('CLUSTER', 'MYID')
-- sharded:   return type(id) == 'string' and id or ''  -- of a user who may not ask
-- sharded: end

-- sharded: local function is_at_home(looks)
-- sharded:   return redis.call('HGET', looks, 'sluice:inbox:node') == this_node()
-- sharded: end

-- sharded: local function note_if_heard(looks, inbox)
-- sharded:   if not is_at_home(looks) then
-- sharded:     for _, field in ipairs(redis.call('HKEYS', looks)) do
-- sharded:       if string.match(field, '^sluice:inbox:%S+ heard$') then
-- sharded:         redis.call('HDEL', looks, field)
-- sharded:       end
-- sharded:     end
-- sharded:     redis.call('HSET', looks, 'sluice:inbox:node', this_node())
-- sharded:   end
-- sharded:   if listens(inbox) then
-- sharded:     redis.call('HSETNX', looks, inbox .. ' heard', 1)
-- sharded:   else
-- sharded:     redis.call('HDEL', looks, inbox .. ' heard')
-- sharded:   end
-- sharded: end

-- A process looks by the end of its claim, which lasts `ms` from now.
local function expect_claimed(looks, ms)
  local known = absence(looks)
  local at = server_time() + ms - too_quiet
  note_absence(looks, known.due > 0 and math.min(known.due, at) or at, known.till,
               math.max(known.claimed, at))
end

-- For how long a look of a process may still have been sent before its latest grant, ms.
local function doubtful_for(looks, inbox)
  local granted = tonumber(redis.call('HGET', looks, inbox .. ' granted') or nil)
  return granted and granted + unheard - server_time() or 0
end

local function promise(looks, inbox, ms)
-- sharded:   note_if_heard(looks, inbox)
  local doubtful = doubtful_for(looks, inbox)
  if doubtful > 0 then
    ms = math.min(ms, doubtful - unheard + next_waiter_looks)
    expect_claimed(looks, ms)
  end
  if redis.call('HSET', looks, inbox, server_time() + ms) == 0 then
    return
  elseif redis.call('PTTL', looks) < queue_kept / 2 then
    redis.call('PEXPIRE', looks, queue_kept)
  end
  if redis.call('HLEN', looks) % 64 > 0 then
    return
  end
  local all = redis.call('HGETALL', looks)
  for i = 1, #all, 2 do
    local old = string.sub(all[i], 1, 13) == 'sluice:inbox:' and tonumber(all[i + 1])
    if old and old + queue_kept < server_time() then
      redis.call('HDEL', looks, all[i])
-- sharded:       redis.call('HDEL', looks, all[i] .. ' heard')
    end
  end
end

-- A process that asks runs, also where its request was granted while it was on its way: among many
-- waiters of one process that is so of each that looks.
local function note_look(looks, inbox)
  if inbox and redis.call('HEXISTS', looks, inbox) == 1 then
    promise(looks, inbox, 1000 + grace)
  end
end

-- A process that was sent a grant has its claim's time, and not less than its next waiter needs to
-- look. A second grant is no proof that it took up the first.
local function expect_claim(looks, inbox, claim)
  local ms = math.max(claim, next_waiter_looks)
  local till = tonumber(redis.call('HGET', looks, inbox) or nil)
  if not till or till > server_time() + ms then
    promise(looks, inbox, ms)
    expect_claimed(looks, ms)
  end
  redis.call('HSET', looks, inbox .. ' granted', server_time())
end

local function runs(looks, inbox)
  local till = tonumber(redis.call('HGET', looks, inbox) or nil)
  till = till and math.max(till, absence(looks).till)
-- sharded:   if not listens(inbox) then
-- sharded:     return till and till >= server_time()
-- sharded:       and not (redis.call('HGET', looks, inbox .. ' heard') and is_at_home(looks))
-- sharded:   end
  return listens(inbox) and not (till and till < server_time())
end

-- In how many ms the process of a ticket looks again, with `many` other processes before it that
-- run, and a hold in the way that lasts `left` ms at most (negative: for ever). The first looks
-- about once a second, each one behind it more seldom: k processes that stopped cost no more than
-- 2 k seconds. When the hold ends by itself they look one after another. `pace`: ms, about a second
-- where it is nil.
local function promise_look(looks, inbox, many, left, pace)
  local rest = math.max(1, many) * (pace or 1000 - server_time() % 250)
-- sharded:   rest = math.min(rest, 1000 - server_time() % 250)
  if left >= 0 then
    rest = math.min(rest, left + 100 * many)
  end
  for _, ms in ipairs({absence(looks).till - server_time(), doubtful_for(looks, inbox)}) do
    rest = ms > 0 and math.min(rest, ms + 1) or rest
  end
  -- The first wait of a process may have been told to rest for longer: it alone looks, by then.
  local told = tonumber(redis.call('HGET', looks, inbox) or 0) - server_time() - grace
  promise(looks, inbox, math.max(rest, told) + grace)
  expect_look(looks, server_time() + math.max(rest, told))
  return rest
end

-- All tickets of a process have left. If it runs after all, all its waits look, and return.
local function forget_process(looks, inbox)
-- sharded:   redis.call('HDEL', looks, inbox .. ' heard')
  if redis.call('HDEL', looks, inbox) > 0 then
    redis.call('PUBLISH', inbox, 'gone')
  end
end

-- How many processes that run, among the first hundred tickets. Fewer than there are: then the
-- process looks more often than it must. `range`: the command that reads the queue.
local function processes_before(range, queue, looks, ticket)
  local known, many = {[inbox_of(ticket)] = true}, 0
  local first, last = '0', '49'
  for _ = 1, 2 do
    local tickets = redis.call(range, queue, first, last)
    for _, other in ipairs(tickets) do
      if other == ticket or many == most_counted then
        return many
      end
      local inbox = inbox_of(other) or ''
      if not known[inbox] then
        known[inbox] = true
        many = many + (runs(looks, inbox) and 1 or 0)
      end
    end
    first, last = '50', '99'
  end
  return many
end

-- part list
-- A queue that is a list of tickets.
local range = 'LRANGE'

local function remove(queue, ticket)
  return redis.call('LREM', queue, 1, ticket)
end

local function take_place(queue, ticket)
  if not redis.call('LPOS', queue, ticket) then
    redis.call('RPUSH', queue, ticket)
  end
end

-- part line
-- A queue that is a sorted set of tickets by when they came, in us of the server's clock, no two at
-- once. A waiter whose ticket was lost says when it came, and has its old place again.
-- REQUIRES: part server_time
local range = 'ZRANGE'

local function remove(queue, ticket)
  return redis.call('ZREM', queue, ticket)
end

-- When it came. `came`: as an earlier copy was told; '0': it is new.
local function take_place(queue, ticket, came)
  local since = redis.call('ZSCORE', queue, ticket)
  if since then
    return tonumber(since)
  end
  server_time()
  since = tonumber(came)
  if since == 0 then
    local last = redis.call('ZRANGE', queue, -1, -1, 'WITHSCORES')[2]
    since = math.max(asked_us, (tonumber(last) or 0) + 1)
  end
  redis.call('ZADD', queue, string.format('%.0f', since), ticket)
  return since
end

-- part tickets
-- A queue of tickets.
-- REQUIRES: parts processes, and list or line
local function drop(queue, looks, inbox)
  for _, ticket in ipairs(redis.call(range, queue, 0, -1)) do
    if inbox_of(ticket) == inbox then
      remove(queue, ticket)
    end
  end
  forget_process(looks, inbox)
end

-- The first ticket of a process that runs; nil: there is none. Those before it have left.
local function first_ticket(queue, looks)
  local ticket = redis.call(range, queue, '0', '0')[1]
  while ticket do
    local inbox = inbox_of(ticket)
    if not inbox then
      remove(queue, ticket)
    elseif runs(looks, inbox) then
      return ticket
    else
      drop(queue, looks, inbox)
    end
    ticket = redis.call(range, queue, '0', '0')[1]
  end
end

-- In how many ms the process of a ticket looks again.
local function next_look(queue, looks, ticket, left)
  local many = processes_before(range, queue, looks, ticket)
  return promise_look(looks, inbox_of(ticket), many, left)
end

-- The same for one that may not stand there yet; and when it came, in a line.
local function stand(queue, looks, ticket, left, came)
  local since = take_place(queue, ticket, came)
  local rest = next_look(queue, looks, ticket, left)
  redis.call('PEXPIRE', queue, queue_kept)
  redis.call('PEXPIRE', looks, queue_kept)
  return rest, since
end
