-- Take a read-write lock to read or to write, or wait for it. Who writes may also read, and write
-- by another request; who reads may not also write. Re-entry of one hold is lock/shared/recount.
-- KEYS, ARGV[1] to ARGV[5]: see lock/shared/settle
-- ARGV[6] request id   ARGV[7] kind: r or w   ARGV[8] owner   ARGV[9] lease, ms
-- ARGV[10] holder, for people   ARGV[11] ticket (see lock/shared/settle); empty: do not wait
-- Reply: an integer, the token: held by this request, now or since an earlier copy of it or a
--        hand-over. A reader's token is that of the last writer, 0 where there was none;
--        {ms, time, foreign}: refused. What is in the way has so much of its lease left; the
--        server's time in ms, 0 where we do not wait; 1: somebody in the way knows no queue;
--        "upgrade": this owner reads.
-- include lock/shared/holds.lua holds
-- include lock/hold/parts.lua next_token
-- include lock/hold/parts.lua server_time
-- include lock/shared/holds.lua survey
-- include lock/shared/settle.lua
-- include lock/hold/parts.lua is_lock
local request, kind, owner, holder, ticket = ARGV[6], ARGV[7], ARGV[8], ARGV[10], ARGV[11]
local lease = tonumber(ARGV[9])
local queue = kind == 'r' and KEYS[4] or KEYS[3]

local function token()
  return tonumber(call('GET', KEYS[2]) or 0)
end

local function is_in()
  if hold_of(KEYS[1], request) then
    prolong(KEYS[1], ARGV[1], kind, owner, lease)
    return true
  end
end

local function stand_in_queue()
  if ticket ~= '' then
    if not call('LPOS', queue, ticket) then
      call('RPUSH', queue, ticket)
    end
    call('PEXPIRE', queue, 120000)  -- whoever waits looks again within 30 s
  end
end

local function writer_is_ours()
  for _, value in ipairs(call('HVALS', KEYS[1])) do
    if string.find(value, '^w ') then
      return true
    end
  end
end

-- Among readers a newcomer may enter unless a writer waits; if readers go first, unless enough of
-- them have gone past it.
local function may_join_readers()
  if not writer_waits() then
    return true
  end
  local handed, past = read_turn()
  if not writers_first and past < most_past then
    note_turn(handed, past + 1)
    return true
  end
end

if is_in() then
  return token()
end
local mode = call('HGET', KEYS[1], 'mode')
-- Every lock ends some time: only what has no end needs a closer look.
if mode and call('PTTL', KEYS[1]) == -1 and not is_lock(KEYS[1]) then
  return redis.error_reply(no_lock)
end
local writes = call('HEXISTS', KEYS[1], owner .. ':write') == 1
local foreign = false
if kind == 'w' and mode == 'read' then
  local longest
  longest, foreign = survey()
  if not longest then
    call('DEL', KEYS[1])
    mode = nil
  elseif call('HEXISTS', KEYS[1], owner) == 1 then
    return 'upgrade'
  end
end
local may = writes
if not mode then
  if call('EXISTS', KEYS[1]) == 1 then
    return redis.error_reply(no_lock)  -- of this kind
  end
  if call('EXISTS', KEYS[3], KEYS[4]) > 0 then
    stand_in_queue()
    pass_on(1, 0, 0)
    if is_in() then
      return token()
    end
    mode = call('HGET', KEYS[1], 'mode')
  end
  may = not mode
elseif kind == 'r' and mode == 'read' then
  may = call('HEXISTS', KEYS[1], owner) == 1 or may_join_readers()
end
if may then
  if ticket ~= '' then
    call('LREM', queue, 0, ticket)
  end
  take(kind, request, owner, holder, lease)
  if kind == 'w' then
    return next_token(KEYS[2], 1)  -- of its owner's earlier hold it may have been told that it is lost
  end
  settle()
  return token()
end
if ticket == '' then
  return {call('PTTL', KEYS[1]), 0, 0}
end
stand_in_queue()
local left = call('PTTL', KEYS[1])
if mode == 'write' then
  foreign = not writer_is_ours()
elseif kind == 'r' and call('LINDEX', queue, 0) == ticket then
  left = math.min(left, 2000)  -- the first reader sees to it that the writer before it lives
end
return {left, server_time(), foreign and 1 or 0}
