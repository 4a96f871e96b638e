-- End holds, and give what is free to whoever waits; or end a wait.
-- KEYS[1] free permits   KEYS[2] holds   KEYS[3] queue of tickets   KEYS[4] people
-- KEYS[5] turns of others (see lock/semaphore/queue)
-- KEYS[6] the answer to an earlier copy; where there is none, the answer to a copy is 0
-- ARGV[1] channel   ARGV[2] ticket to be taken out of the queue; empty: none
-- ARGV[3] ... members of the sorted set of holds
-- Reply: how many of them were held, and are free now.
-- include lock/hold/parts.lua server_time
-- include lock/semaphore/holds.lua
-- include lock/semaphore/queue.lua
local before = KEYS[6] and call('GET', KEYS[6])
if before then
  return tonumber(before)
end
local back = reclaim()
local moved = ARGV[2] ~= '' and call('LREM', KEYS[3], 1, ARGV[2]) > 0
local ended = 0
for i = 3, #ARGV do
  local permits = give_back(ARGV[i])
  back = back + permits
  ended = ended + (permits > 0 and 1 or 0)
end
local free = serve('', moved)
if back > 0 then
  announce(ARGV[1], free)
end
if KEYS[6] then
  call('SET', KEYS[6], ended, 'PX', 60000)
end
return ended
