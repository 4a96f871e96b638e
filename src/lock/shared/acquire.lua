-- Take a read-write lock to read or to write, or wait for it. An owner that writes may also read,
-- and write by another request; an owner that reads may not also write. Re-entry of one hold is
-- lock/shared/recount.
-- KEYS, ARGV[1] to ARGV[5]: see lock/shared/settle
-- ARGV[6] request id   ARGV[7] kind: r or w   ARGV[8] owner   ARGV[9] lease, ms
-- ARGV[10] holder, for people   ARGV[11] ticket (see lock/shared/settle); empty: do not wait
-- ARGV[12] when it came, us; '0': now
-- Reply: an integer, the token: held by this request, now or since an earlier copy of it or a
--        hand-over. Readers that are in together share that of the first of them;
--        {ms, time, foreign, came}: refused. As lock/mutex/acquire; 1: a holder in the way knows no
--        queue; when it came;
--        "upgrade": this owner reads.
-- include lock/hold/parts.lua server_time
-- include lock/shared/holds.lua holds
-- include lock/hold/parts.lua next_token
-- include lock/wait/queue.lua inbox
-- include lock/wait/queue.lua strangers
-- include lock/wait/queue.lua processes
-- include lock/wait/queue.lua line
-- include lock/wait/queue.lua tickets
-- include lock/shared/holds.lua survey
-- include lock/shared/settle.lua
-- include lock/hold/parts.lua denied
-- include lock/hold/parts.lua is_lock
local request, kind, owner, holder, ticket = ARGV[6], ARGV[7], ARGV[8], ARGV[10], ARGV[11]
local lease = tonumber(ARGV[9])
local queue = kind == 'r' and KEYS[4] or KEYS[3]

local function is_in()
  if hold_of(KEYS[1], ARGV[1], kind, request) then
    prolong(KEYS[1], ARGV[1], kind, owner, lease)
    return true
  end
end

local function writer_is_ours()
  for _, note in ipairs(call('HVALS', writing_of(ARGV[1]))) do
    local writer = string.match(note, '^w %d+ %d+ (%S+)')
    if writer and call('HEXISTS', KEYS[1], writer .. ':write') == 1 then
      return true
    end
  end
end

-- Among readers a newcomer may enter unless a writer waits; if readers go first, unless enough of
-- them have gone past it.
local function may_join_readers()
  if not first_of(KEYS[3]) then
    return true
  end
  local handed, past = read_turn()
  if not writers_first and past < most_past then
    note_turn(handed, past + 1)
    return true
  end
end

if is_in() then
  note_look(KEYS[5], inbox_of(ticket))
  return last_token()
end
local mode = redis.pcall('HGET', KEYS[1], 'mode')
-- Every lock ends some time: only what has no end needs a closer look.
if type(mode) == 'table' or mode and call('PTTL', KEYS[1]) == -1 and not is_lock(KEYS[1]) then
  return redis.error_reply(denied(mode, 'HGET', no_lock))
end
local writes = call('HEXISTS', KEYS[1], owner .. ':write') == 1
local foreign = false
if kind == 'w' and mode == 'read' then
  local longest
  longest, foreign = look_at_readers()
  if not longest then
    call('DEL', KEYS[1], readers_of(ARGV[1]))
    mode = nil
  elseif call('HEXISTS', KEYS[1], owner) == 1 then
    return 'upgrade'
  end
end
local may, chance_left = writes, 0
if not mode and call('EXISTS', KEYS[5]) == 1 then
  chance_left = left_to_strangers(KEYS[5])
end
if not mode and chance_left == 0 then
  if call('EXISTS', KEYS[1]) == 1 then
    return redis.error_reply(no_lock)  -- of this kind
  end
  if call('EXISTS', KEYS[3], KEYS[4]) > 0 then
    if ticket ~= '' then
      stand(queue, KEYS[5], ticket, -1, ARGV[12])
    end
    pass_on(1, 0, 0)
    if is_in() then
      return last_token()
    end
    mode = call('HGET', KEYS[1], 'mode')
  end
  may = not mode
elseif kind == 'r' and mode == 'read' then
  may = call('HEXISTS', KEYS[1], owner) == 1 or may_join_readers()
end
if may then
  local token = token_of_new(kind)  -- of an owner that may believe that an earlier hold is lost
  if ticket ~= '' then
    remove(queue, ticket)
    forget_looks()
  end
  take(kind, request, owner, holder, lease)
  if kind == 'r' then
    settle()
  end
  return token
end
local left = chance_left > 0 and chance_left or call('PTTL', KEYS[1])
if ticket == '' then
  return {left, 0, 0}
end
if mode == 'write' then
  foreign = not writer_is_ours()
end
local rest, came = stand(queue, KEYS[5], ticket, left, ARGV[12])
-- sharded: if not listens(inbox_of(ticket)) then
-- sharded:   return {rest, -server_time(), foreign and 1 or 0, came}
-- sharded: end
return {rest, server_time(), foreign and 1 or 0, came}
