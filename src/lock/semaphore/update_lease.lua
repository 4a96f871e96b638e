-- Give a hold another lease, from now on.
-- KEYS[1] free permits   KEYS[2] holds   KEYS[3] queue of tickets   KEYS[4] people
-- KEYS[5] turns of others (see lock/semaphore/queue)
-- ARGV[1] channel   ARGV[2] member   ARGV[3] lease, ms
-- Reply: 1 done; 0 it is over.
-- include lock/hold/parts.lua server_time
-- include lock/semaphore/holds.lua
-- include lock/semaphore/queue.lua
local back = reclaim()
local found = call('ZSCORE', KEYS[2], ARGV[2])
if found then
  call('ZADD', KEYS[2], end_of(ARGV[3]), ARGV[2])
end
local free, head = serve('', false)
if back > 0 then
  announce(ARGV[1], free)
end
if found and head then  -- the end that it waits for may come sooner
  local request, inbox = ticket_parts(head)
  tell(inbox, request, string.format('%.0f', math.min(ARGV[3], 30000)))
end
return found and 1 or 0
