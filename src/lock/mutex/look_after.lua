-- Asks the first two processes that wait to look: one when `ms` are over, and half a second later
-- the other, should that one stand still too. Whom nobody hears is dead, and leaves. `told`: a
-- request that need not be told again. Returns who was told last, and in how many ms; nil: nobody
-- was.
local function have_it_looked_at(queue, ms, told)
  local last, after
  local place = 0
  while place < 2 do
    local ticket = redis.call('LINDEX', queue, place)
    if not ticket then
      break
    end
    local request, inbox = string.match(ticket, '^(%S+) %d+ %d+ (%S+)')
    if request == told then
      place = place + 1
    elseif redis.call('PUBLISH', inbox, 'look ' .. request .. ' ' .. ms + 500 * place) > 0 then
      last, after = request, ms + 500 * place
      place = place + 1
    else
      redis.call('LREM', queue, 1, ticket)
    end
  end
  return last, after
end

-- Who leaves the queue may have been one of these, and the hold in the way one that nobody takes
-- up.
local function hand_watch_on(lock, queue, ticket)
  local left = redis.call('PTTL', lock)
  if left >= 0 and left <= tonumber(string.match(ticket, '^%S+ %d+ (%d+)')) then
    have_it_looked_at(queue, left)
  end
end
