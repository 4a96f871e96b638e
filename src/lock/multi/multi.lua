-- The scripts of MultiLock.

-- script acquire
-- Take several locks, all or none; or wait for the first one that another holds.
-- KEYS, four for each lock, in the order of waiting: lock hash, fencing counter, queue of tickets,
-- looks
-- ARGV[1] owner   ARGV[2] lease, ms   ARGV[3] request id   ARGV[4] holder, for people
-- ARGV[5] ticket (see lock/mutex/hand_over); empty: do not wait
-- ARGV[6] '1': when refused, keep the locks before the one that another holds
-- ARGV[7] most hand-overs in a row   ARGV[8..] channel of each lock
-- Reply: {0, token of each}: all are held by this request;
--        {which, ms, time, foreign, kept}: refused, as lock/mutex/acquire, by the lock of that
--        number, from 1; `kept` locks before it are held by this request, and none after it.
local call = redis.call
-- include lock/hold/parts.lua server_time
-- include lock/hold/parts.lua next_token
-- include lock/hold/parts.lua denied
-- include lock/hold/parts.lua is_lock
-- include lock/wait/queue.lua leaving
-- include lock/wait/queue.lua inbox
-- include lock/wait/queue.lua strangers
-- include lock/wait/queue.lua processes
-- include lock/wait/queue.lua list
-- include lock/wait/queue.lua tickets
-- include lock/mutex/mutex.lua grant
-- include lock/mutex/mutex.lua hand_over
local owner, lease, request, holder, ticket = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local many = #KEYS / 4

-- All keys are read before any is written: a key that is no lock ends it here.
local held_by, free, way, chance_left = {}, {}, nil, 0
for i = 1, many do
  local key = KEYS[4 * i - 3]
  held_by[i] = redis.pcall('HGET', key, 'sluice:request')
  free[i] = not held_by[i] and call('EXISTS', key) == 0
  if type(held_by[i]) == 'table' or not (held_by[i] or free[i] or is_lock(key, 64)) then
    return redis.error_reply(denied(held_by[i], 'HGET', no_lock))
  end
  if not way and free[i] then
    chance_left = left_to_strangers(KEYS[4 * i])
  end
  if not way and (not free[i] and held_by[i] ~= request or chance_left > 0) then
    way = i
  end
end

local function hold(i)
  local key, counter = KEYS[4 * i - 3], KEYS[4 * i - 2]
  local token
  if free[i] then
    token = next_token(counter, 1)
    call('HSET', key, owner, 1, 'sluice:request', request, 'sluice:holder', holder)
  else
    token = tonumber(call('GET', counter)) or next_token(counter, 1)  -- this hold is the latest
  end
  call('PEXPIRE', key, lease)
  return token
end

if ticket ~= '' then
  for i = 1, many do
    if i ~= way then
      leave_queue(KEYS[4 * i - 1], KEYS[4 * i], ticket)  -- it waits in one queue at a time
    end
  end
end
if not way then
  local reply = {0}
  for i = 1, many do
    reply[i + 1] = hold(i)
  end
  return reply
end

local kept = 0
for i = 1, many do
  local mine = held_by[i] == request
  if i < way and (mine or (free[i] and ARGV[6] == '1')) then
    hold(i)
    kept = kept + 1
  elseif mine then
    hand_over(ARGV[7 + i], tonumber(ARGV[7]), 4 * i - 3)  -- a waiter holds only what comes before
  elseif free[i] and ticket ~= '' then  -- it may have been its turn there: the next one looks
    local first = first_ticket(KEYS[4 * i - 1], KEYS[4 * i])
    local other, inbox = string.match(first or '', '^(%S+) %d+ %d+ (%S+)')
    if other then
      call('PUBLISH', inbox, 'look ' .. other .. ' 0')
    end
  end
end
local lock, time = KEYS[4 * way - 3], 0
local rest = chance_left > 0 and chance_left or call('PTTL', lock)
if ticket ~= '' then
  rest, time = stand(KEYS[4 * way - 1], KEYS[4 * way], ticket, rest), server_time()
end
return {way, rest, time, (held_by[way] or free[way]) and 0 or 1, kept}

-- script release
-- End the holds of one request and hand the locks over; or end its wait.
-- KEYS, four for each lock: lock hash, fencing counter, queue of tickets, looks
-- ARGV[1] request id   ARGV[2] most hand-overs in a row
-- ARGV[3] ticket to be taken out of the queues; empty: none   ARGV[4..] channel of each lock
-- Reply: for each lock 1 ended, 0 there was no such hold.
-- include lock/hold/parts.lua server_time
-- include lock/hold/parts.lua next_token
-- include lock/wait/queue.lua leaving
-- include lock/wait/queue.lua inbox
-- include lock/wait/queue.lua strangers
-- include lock/wait/queue.lua processes
-- include lock/wait/queue.lua list
-- include lock/wait/queue.lua tickets
-- include lock/mutex/mutex.lua grant
-- include lock/mutex/mutex.lua hand_over
local ended = {}
for i = 1, #KEYS / 4 do
  local at = 4 * i - 3
  -- pcall: a key that became something else must not keep the other locks held
  if ARGV[3] ~= '' then
    pcall(leave_queue, KEYS[at + 2], KEYS[at + 3], ARGV[3])
  end
  if redis.pcall('HGET', KEYS[at], 'sluice:request') == ARGV[1] then
    hand_over(ARGV[3 + i], tonumber(ARGV[2]), at)
    ended[i] = 1
  else
    ended[i] = 0
  end
end
return ended
