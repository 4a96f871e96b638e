-- Ends the hold of a lock and gives it to the first that waits and lives, else to nobody.
-- KEYS[first], 1 where it is not given: lock hash   the next: fencing counter
-- the one after that: queue of tickets: "request lease claim inbox owner holder", times in ms A
-- process that nobody hears is dead: PUBLISH says how many heard. One that hears but stands still
-- gets `claim` ms to say that it has taken over; two others look after it then. Who was told to
-- look by the last hand-over, and has not looked yet, still will, and looks again when it sees a
-- claim: the field sluice:looks is "request till" of the last one told, until it looks. So a
-- hand-over tells one, not two.
-- REQUIRES: lock/mutex/look_after
-- After `bound` of these in a row others than us (`channel`), if any listen, get their chance: the
-- lock is free then, and the first of the queue comes back 10 ms later.
local function hand_over(channel, bound, first)
  local call = redis.call
  local at = first or 1
  local lock, counter, queue = KEYS[at], KEYS[at + 1], KEYS[at + 2]
  local passed, looks = unpack(call('HMGET', lock, 'sluice:handoffs', 'sluice:looks'))
  passed = tonumber(passed or 0)
  local told, till = string.match(looks or '', '^(%S+) (%d+)')
  local ticket = call('LPOP', queue)
  while ticket do
    local request, lease, claim, inbox, owner, holder =
      string.match(ticket, '^(%S+) (%d+) (%d+) (%S+) (%S+) (.*)$')
    if passed >= bound then
      passed = 0
      if call('PUBLISH', channel, '0') > 0 then
        call('DEL', lock)
        if call('PUBLISH', inbox, 'look ' .. request .. ' 10') > 0 then
          call('LPUSH', queue, ticket)
        end
        return
      end
    end
    local token = next_token(counter, 1)
    local grant = string.format('grant %s %.0f %.0f %s', request, token, server_time(), claim)
    if call('PUBLISH', inbox, grant) > 0 then
      call('DEL', lock)
      call('HSET', lock, owner, 1, 'sluice:request', request, 'sluice:holder', holder,
           'sluice:handoffs', passed + 1)
      call('PEXPIRE', lock, claim)
      local now = server_time()
      local last, after = have_it_looked_at(queue, claim, tonumber(till or 0) > now and told)
      looks = last and string.format('%s %.0f', last, now + after) or looks
      if looks then
        call('HSET', lock, 'sluice:looks', looks)
      end
      return
    end
    ticket = call('LPOP', queue)
  end
  call('DEL', lock)
  call('PUBLISH', channel, '0')
end
