-- Take permits, or wait for them in the queue.
-- KEYS[1] free permits   KEYS[2] holds   KEYS[3] queue of tickets   KEYS[4] people
-- KEYS[5] turns of others (see lock/semaphore/queue)
-- ARGV[1] channel   ARGV[2] request id   ARGV[3] HOLDER (see lock/semaphore/holds)
-- ARGV[4] inbox of who waits; empty: do not wait
-- Reply: 1: held by this request, now or since an earlier copy of it or a hand-over;
--        {ms, time, leads}: refused. When to look again, the server's time in ms, and 1 for whoever
--        is the head of the queue.
-- include lock/hold/parts.lua server_time
-- include lock/semaphore/holds.lua
-- include lock/semaphore/queue.lua
local count, lease = string.match(ARGV[3], '^(%d+) (%d+)')
local back = reclaim()
local held = prolong(ARGV[2], ARGV[3], lease)
local free, head, got = serve(ARGV[2], false)
if not held and not got and not head and free >= tonumber(count) then
  take(ARGV[2], ARGV[3], lease)
  free = free - count
  got = true
end
if back > 0 then
  announce(ARGV[1], free)
end
if held or got then
  return 1
end
if ARGV[4] == '' then
  return {30000, 0, 0}
end
local ticket = ARGV[2] .. ' ' .. ARGV[4] .. ' ' .. ARGV[3]
if not call('LPOS', KEYS[3], ticket) then
  call('RPUSH', KEYS[3], ticket)
end
call('PEXPIRE', KEYS[3], 120000)  -- whoever waits looks again within 30 s
head = head or ticket
if head == ticket then
  local first = call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')
  local left = first[2] and tonumber(first[2]) - server_time() or 30000
  local turn_left = turn_of_others()
  if turn_left > 0 then
    left = math.min(left, turn_left)
  end
  return {math.max(0, math.min(left, 30000)), server_time(), 1}
end
local _, head_inbox = ticket_parts(head)
return {deputy(head_inbox) == ARGV[2] and 2000 or 30000, server_time(), 0}
