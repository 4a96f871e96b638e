-- End the holds of one request and hand the locks over; or end its wait.
-- KEYS, three for each lock: lock hash, fencing counter, queue of tickets
-- ARGV[1] request id   ARGV[2] most hand-overs in a row
-- ARGV[3] ticket to be taken out of the queues; empty: none   ARGV[4..] channel of each lock
-- Reply: for each lock 1 ended, 0 there was no such hold.
-- include lock/hold/parts.lua next_token
-- include lock/hold/parts.lua server_time
-- include lock/mutex/mutex.lua look_after
-- include lock/mutex/mutex.lua hand_over
local ended = {}
for i = 1, #KEYS / 3 do
  local at = 3 * i - 2
  -- pcall: a key that became something else must not keep the other locks held
  if ARGV[3] ~= '' then
    local removed = redis.pcall('LREM', KEYS[at + 2], 0, ARGV[3])
    if type(removed) == 'number' and removed > 0 then
      hand_watch_on(KEYS[at], KEYS[at + 2], ARGV[3])
    end
  end
  if redis.pcall('HGET', KEYS[at], 'sluice:request') == ARGV[1] then
    hand_over(ARGV[3 + i], tonumber(ARGV[2]), at)
    ended[i] = 1
  else
    ended[i] = 0
  end
end
return ended
