-- Holds of permits: members of the sorted set KEYS[2]; a score is when the hold ends, in ms of the
-- server's clock.
--   Semaphore        "request HOLDER": all permits of one request
--   PermitSemaphore  16 bytes, the id of one permit, as Redisson writes it; the hash KEYS[4] has
--                    {id: HOLDER} for people
-- HOLDER is "count lease claim PEOPLE", times in ms. Free permits are the string KEYS[1].
local call = redis.call
local endless = 922337203685477  -- Redisson's score of a hold without an end

local function number_of(text)
  return tonumber(string.match(text, '%d+'))
end

local function is_permit(member)
  return #member == 16
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
  return string.format('%.0f', math.min(server_time() + lease, endless))
end

-- Takes the permits of a request out of the free ones, of which there are enough.
local function take(request, holder, lease)
  local ends = end_of(lease)
  for _, member in ipairs(members_of(request, holder)) do
    call('ZADD', KEYS[2], ends, member)
    if is_permit(member) then
      call('HSET', KEYS[4], member, holder)
    end
  end
  call('DECRBY', KEYS[1], number_of(holder))
  local ttl = call('PTTL', KEYS[1])
  if ttl > 0 then  -- whoever lets the semaphore expire means all of it
    call('PEXPIRE', KEYS[2], ttl)
    call('PEXPIRE', KEYS[4], ttl)
  end
end

-- Whether the request has its permits already; it has them for `lease` from now on then.
local function prolong(request, holder, lease)
  local ends = end_of(lease)
  local found = false
  for _, member in ipairs(members_of(request, holder)) do
    if call('ZSCORE', KEYS[2], member) then
      call('ZADD', KEYS[2], ends, member)
      found = true
    end
  end
  return found
end

-- Ends one hold. How many permits are free by it; 0: there was no such hold.
local function give_back(member)
  if call('ZREM', KEYS[2], member) == 0 then
    return 0
  end
  local permits = 1
  if is_permit(member) then
    call('HDEL', KEYS[4], member)
  else
    permits = number_of(string.match(member, ' .*'))
  end
  if call('EXISTS', KEYS[1]) == 1 then  -- nothing comes back to a semaphore that was deleted
    call('INCRBY', KEYS[1], permits)
  end
  return permits
end

-- Gives back what has outlived its lease, at most a thousand holds at a time. How many permits.
local function reclaim()
  local back = 0
  for _, member in ipairs(call('ZRANGEBYSCORE', KEYS[2], '-inf', server_time(), 'LIMIT', 0, 1000)) do
    back = back + give_back(member)
  end
  -- A Java program that ended holds of ours left their people behind.
  if call('HLEN', KEYS[4]) > call('ZCARD', KEYS[2]) then
    for _, member in ipairs(call('HKEYS', KEYS[4])) do
      if not call('ZSCORE', KEYS[2], member) then
        call('HDEL', KEYS[4], member)
      end
    end
  end
  return back
end
