-- Change how many permits there are, or look.
-- KEYS[1] free permits   KEYS[2] holds   KEYS[3] queue of tickets   KEYS[4] people
-- KEYS[5] turns of others (see lock/semaphore/queue)
-- KEYS[6] the answer to an earlier copy; missing where copies do no harm
-- ARGV[1] channel   ARGV[2] what   ARGV[3] a number
-- Reply: look: how many are free          add: how many are free then, before anybody got them
--        drain: how many were free        set: the same as add
--        try_set: 1 set; 0 there was a number already
-- include lock/hold/parts.lua server_time
-- include lock/semaphore/holds.lua
-- include lock/semaphore/queue.lua
local changes = {}

function changes.look(free)
  return free
end

function changes.add(_, number)
  return call('INCRBY', KEYS[1], number)
end

-- However many are held, so many there shall be in all.
function changes.set(free, number)
  local held = 0
  for _, member in ipairs(call('ZRANGE', KEYS[2], 0, -1)) do
    held = held + (is_permit(member) and 1 or number_of(string.match(member, ' .*')))
  end
  return call('INCRBY', KEYS[1], string.format('%.0f', number - held - free))
end

-- Holds that are there all the same are of a former life, and their end must not count.
function changes.try_set(_, number)
  if call('EXISTS', KEYS[1]) == 1 then
    return 0
  end
  call('DEL', KEYS[2], KEYS[4])
  call('SET', KEYS[1], number)
  return 1
end

function changes.drain(free)
  if free > 0 then
    call('DECRBY', KEYS[1], string.format('%.0f', free))
  end
  return math.max(free, 0)
end

local before = KEYS[6] and call('GET', KEYS[6])
if before then
  return tonumber(before)
end
local back = reclaim()
local was = tonumber(call('GET', KEYS[1]) or 0)
local answer = changes[ARGV[2]](was, ARGV[3])
local now = tonumber(call('GET', KEYS[1]) or 0)
local free = serve('', false)
if back > 0 or now > was then
  announce(ARGV[1], free)
end
if KEYS[6] then
  call('SET', KEYS[6], answer, 'PX', 60000)
end
return ARGV[2] == 'look' and free or answer
