-- What the scripts of semaphores include.

-- part holds
-- Holds of permits: members of the sorted set KEYS[2]; a score is when the hold ends, in ms of the
-- server's clock.
--   Semaphore        "request HOLDER": all permits of one request
--   PermitSemaphore  16 bytes, the id of one permit, as Redisson writes it; the hash KEYS[4] has
--                    {id: HOLDER} for people
-- HOLDER is "count lease claim PEOPLE", times in ms. Free permits are the string KEYS[1].
-- REQUIRES: part number
local call = redis.call
local endless = 922337203685477  -- Redisson's score of a hold without an end

-- Raises Redis's own WRONGTYPE error, for a string or a sorted set that is not a semaphore's.
local function refuse(key)
  call('LLEN', key)
end

-- The first look of a script: an error reply where NAME is a key of something else.
local no_semaphore = 'WRONGTYPE the key of this name is not a semaphore; nothing was written'
local function refusal()
  local text = redis.pcall('GET', KEYS[1])
  if type(text) == 'table' or text and not number_in(text) then
    return redis.error_reply(denied(text, 'GET', no_semaphore))
  end
end

-- nil: nobody has set how many there are.
local function free_permits()
  local text = call('GET', KEYS[1])
  local number = number_in(text)
  if text and not number then
    refuse(KEYS[1])
  end
  return number
end

local function number_of(text)
  return tonumber(string.match(text, '%d+'))
end

local function is_permit(member)
  return #member == 16
end

local function check_hold(member)
  if not is_permit(member) and not string.match(member, '^%S+ %d+ %d+ %d+ ') then
    refuse(KEYS[2])
  end
end

-- How many permits are held.
local function count_held()
  local held = 0
  for _, member in ipairs(call('ZRANGE', KEYS[2], 0, -1)) do
    check_hold(member)
    held = held + (is_permit(member) and 1 or number_of(string.match(member, ' .*')))
  end
  return held
end

-- The members of a request. One for permits is 12 bytes in hex; their ids count on behind these.
local function members_of(request, holder)
  if #request ~= 24 then
    return {request .. ' ' .. holder}
  end
  local bytes = string.gsub(request, '%x%x', function(digits)
    return string.char(tonumber(digits, 16))
  end)
  local members = {}
  for i = 1, number_of(holder) do
    members[i] = bytes .. string.char(0, 0, math.floor(i / 256), i % 256)
  end
  return members
end

local function end_of(lease)
  return math.min(server_time() + lease, endless)
end

-- Takes the permits of a request out of the free ones, of which there are enough. Each step of it
-- and of give_back() stands where a user who may not do it leaves the number of permits as it was:
-- a ZADD that is refused raises before anything is counted.
local function take(request, holder, lease)
  local ends = end_of(lease)
  local members = members_of(request, holder)
  for _, member in ipairs(members) do
    if is_permit(member) then
      call('HSET', KEYS[4], member, holder)
    end
  end
  call('ZADD', KEYS[2], 'XX', ends, '')
  call('DECRBY', KEYS[1], number_of(holder))
  for _, member in ipairs(members) do
    call('ZADD', KEYS[2], ends, member)
  end
  local ttl = call('PTTL', KEYS[1])
  if ttl > 0 then  -- if NAME expires, its holds expire with it
    call('PEXPIRE', KEYS[2], ttl)
    call('PEXPIRE', KEYS[4], ttl)
  end
end

-- Whether the request has its permits already. If so it has them for `lease` from now on, or for
-- as long as it was given meanwhile: a late copy takes nothing of that.
local function prolong(request, holder, lease)
  local ends = end_of(lease)
  local found = false
  for _, member in ipairs(members_of(request, holder)) do
    if call('ZSCORE', KEYS[2], member) then
      call('ZADD', KEYS[2], 'GT', ends, member)
      found = true
    end
  end
  return found
end

-- Ends one hold. How many permits that makes free; 0: there was no such hold.
local function give_back(member)
  if not call('ZSCORE', KEYS[2], member) then
    return 0
  end
  local permits = 1
  if is_permit(member) then
    call('HDEL', KEYS[4], member)
  else
    permits = number_of(string.match(member, ' .*'))
  end
  call('ZREM', KEYS[2], '')
  if call('EXISTS', KEYS[1]) == 1 then  -- nothing comes back to a semaphore that was deleted
    call('INCRBY', KEYS[1], permits)
  end
  call('ZREM', KEYS[2], member)
  return permits
end

-- Gives back what has outlived its lease, at most a thousand holds at a time. How many permits.
local function reclaim()
  local over = call('ZRANGEBYSCORE', KEYS[2], '-inf', server_time(), 'LIMIT', 0, 1000)
  for _, member in ipairs(over) do
    check_hold(member)
  end
  local back = 0
  for _, member in ipairs(over) do
    back = back + give_back(member)
  end
  -- A Java program that ends holds of ours leaves their people behind.
  if call('HLEN', KEYS[4]) > call('ZCARD', KEYS[2]) then
    for _, member in ipairs(call('HKEYS', KEYS[4])) do
      if not call('ZSCORE', KEYS[2], member) then
        call('HDEL', KEYS[4], member)
      end
    end
  end
  return back
end

-- part queue
-- The waiters: the line KEYS[3] of tickets "request inbox HOLDER", first come first served: while
-- the head wants more than there is, every waiter behind it waits too. A process gets its permits
-- for `claim` ms only, until it says that it has taken over.
--
-- Java programs do not know the queue, and take what they find free. Where they listen to the
-- channel, they have their chance (lock/wait/queue, part strangers) when each that waits or holds
-- here has had its turn, and after 16 releases at the latest: permits that come back are left to
-- them. KEYS[5] has {passed: releases since then}.
local most_passed = 16

local function ticket_parts(ticket)
  return string.match(ticket, '^(%S+) (%S+) (.*)$')
end

-- Permits came back: whether they are left to Java programs now.
local function opens_turn()
  if strangers(ARGV[1]) <= 0 then
    return false
  end
  local passed = call('HINCRBY', KEYS[5], 'passed', 1)
  call('PEXPIRE', KEYS[5], queue_kept)
  local ours = call('ZCARD', KEYS[3]) + call('ZCARD', KEYS[2])
  if not leave_to_strangers(KEYS[5], ARGV[1], passed - 1, ours, most_passed) then
    return false
  end
  call('HSET', KEYS[5], 'passed', 0)
  return true
end

-- Gives the free permits to the heads of the queue. `me` is the request that asks, which is told by
-- the reply. `moved`: the head may be new, and not know that it is the head. Returns how many
-- permits are free then; the ticket of the head, if it is alive and has to wait, else nil; whether
-- `me` has got its permits.
local function serve(me, moved)
  local free = free_permits() or 0
  local got = false
  local ticket = first_ticket(KEYS[3], KEYS[5])
  while ticket and left_to_strangers(KEYS[5]) == 0 do
    local request, inbox, holder = ticket_parts(ticket)
    local count, lease, claim = string.match(holder, '^(%d+) (%d+) (%d+)')
    if tonumber(count) > free then
      if moved and request ~= me then
        call('PUBLISH', inbox, 'look ' .. request .. ' 50')
      end
      return free, ticket, got
    end
    if request == me then
      take(request, holder, lease)
      got = true
    elseif opens_turn() then
      call('PUBLISH', inbox, 'look ' .. request .. ' ' .. chance)
      return free, ticket, got
    else
      take(request, holder, claim)
      expect_claim(KEYS[5], inbox, claim)
      call('PUBLISH', inbox, string.format('grant %s 0 %.0f %s', request, server_time(), claim))
    end
    free = free - count
    remove(KEYS[3], ticket)
    moved = true
    ticket = first_ticket(KEYS[3], KEYS[5])
  end
  return free, ticket, got
end

-- Tells Java programs that there are free permits.
local function announce(free)
  if free > 0 and call('PUBLISH', ARGV[1], free) > 0
     and left_to_strangers(KEYS[5]) == 0 then
    opens_turn()
  end
end
