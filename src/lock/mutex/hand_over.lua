-- Ends the hold of KEYS[1] and gives the lock to the first that waits and lives, else to nobody.
-- KEYS[1] lock hash   KEYS[2] fencing counter   KEYS[3] queue of tickets:
--   "request lease claim inbox owner holder", times in ms
-- A process that nobody hears is dead: PUBLISH says how many heard. One that hears but stands still
-- gets `claim` ms to say that it has taken over; the next in the queue looks after it then.
-- After `bound` of these in a row others than us (`channel`), if any listen, get their chance: the
-- lock is free then, and the first of the queue comes back 10 ms later.
local function hand_over(channel, bound)
  local call = redis.call
  local passed = tonumber(call('HGET', KEYS[1], 'sluice:handoffs') or 0)
  local ticket = call('LPOP', KEYS[3])
  while ticket do
    local request, lease, claim, inbox, owner, holder =
      string.match(ticket, '^(%S+) (%d+) (%d+) (%S+) (%S+) (.*)$')
    if passed >= bound then
      passed = 0
      if call('PUBLISH', channel, '0') > 0 then
        call('DEL', KEYS[1])
        if call('PUBLISH', inbox, 'look ' .. request .. ' 10') > 0 then
          call('LPUSH', KEYS[3], ticket)
        end
        return
      end
    end
    local token = next_token(KEYS[2], 1)
    local grant = string.format('grant %s %.0f %.0f %s', request, token, server_time(), claim)
    if call('PUBLISH', inbox, grant) > 0 then
      call('DEL', KEYS[1])
      call('HSET', KEYS[1], owner, 1, 'sluice:request', request, 'sluice:holder', holder,
           'sluice:handoffs', passed + 1)
      call('PEXPIRE', KEYS[1], claim)
      local next = call('LINDEX', KEYS[3], 0)
      if next then
        local waits, where = string.match(next, '^(%S+) %d+ %d+ (%S+)')
        call('PUBLISH', where, 'look ' .. waits .. ' ' .. claim)
      end
      return
    end
    ticket = call('LPOP', KEYS[3])
  end
  call('DEL', KEYS[1])
  call('PUBLISH', channel, '0')
end
