-- The scripts of Latch.
-- KEYS[1] count   KEYS[2] zset of requests: id, when in ms   KEYS[3] number of the last opening
-- KEYS[4] zset of the parts that have counted since the count was set: name, when in ms
-- In set and count_down:
-- ARGV[1] request id   ARGV[2] a number   ARGV[3] channel
-- ARGV[4] how long a request is remembered, ms   ARGV[5] how many at most
-- ARGV[6] how long an opening is remembered, ms

-- part count
local call = redis.call
local no_latch = 'WRONGTYPE the key of this name is not a latch; nothing was written'

-- No count: there is none. And an error reply where the key is one of something else.
-- REQUIRES: part number
local function count()
  local text = redis.pcall('GET', KEYS[1])
  if type(text) == 'table' or text and not number_in(text) then
    return nil, redis.error_reply(denied(text, 'GET', no_latch))
  end
  return number_in(text)
end

-- part once
-- Whether something is new. It is remembered then.
local function is_new_in(key, what)
  if call('ZSCORE', key, what) then
    return false
  end
  -- Not before those that are there, though the clock was set back: the oldest is forgotten first.
  local latest = call('ZREVRANGE', key, 0, 0, 'WITHSCORES')[2]
  local now = math.max(server_time(), tonumber(latest or 0))
  call('ZADD', key, now, what)
  call('ZREMRANGEBYSCORE', key, '-inf', now - ARGV[4])
  call('ZREMRANGEBYRANK', key, 0, -1 - ARGV[5])
  call('PEXPIRE', key, ARGV[4])
  return true
end

-- Whether this request is no copy of an earlier one.
local function is_new()
  return is_new_in(KEYS[2], ARGV[1])
end

-- Openings are numbered on from the server's time, so that no number comes again when it was
-- forgotten: a waiter could not tell the new opening from the one it knows.
local function open()
  if call('INCR', KEYS[3]) == 1 then  -- first: it fails where KEYS[3] is no number
    call('SET', KEYS[3], server_time())
  end
  call('DEL', KEYS[1], KEYS[4])
  call('PEXPIRE', KEYS[3], ARGV[6])
  call('PUBLISH', ARGV[3], '0')
end

-- script look
-- What a waiter wants to know.
-- Reply: {count, 0: there is none; number of the last opening, 0: none that is remembered}
-- include lock/hold/parts.lua denied
-- include store/number.lua number
-- include lock/latch/latch.lua count
local left, refused = count()
-- LLEN raises WRONGTYPE where the key holds no number.
local opening = tonumber(call('GET', KEYS[3]) or 0)
  or call('LLEN', KEYS[3])
return refused or {math.max(left or 0, 0), opening}

-- script set
-- Set the count, once for each request; 0 opens the latch.
-- ARGV[7] 1: whatever the count is now
-- Reply: 1 set, now or by an earlier copy; 0 the latch is not open.
-- include lock/hold/parts.lua server_time
-- include lock/hold/parts.lua denied
-- include store/number.lua number
-- include lock/latch/latch.lua count
-- include lock/latch/latch.lua once
local before, refused = count()
if refused then
  return refused
end
if before and ARGV[7] == '0' and not call('ZSCORE', KEYS[2], ARGV[1]) then
  return 0
end
if not is_new() then
  return 1
end
if ARGV[2] == '0' then
  open()
else
  call('DEL', KEYS[4])  -- parts count once for each count that was set
  call('SET', KEYS[1], ARGV[2])
  call('PUBLISH', ARGV[3], '1')
end
return 1

-- script count_down
-- Count down by ARGV[2], once for each request; open the latch at zero.
-- ARGV[7] name of a part, which counts once; empty: none
-- Reply: the count that is left, 0: open.
-- include lock/hold/parts.lua server_time
-- include lock/hold/parts.lua denied
-- include store/number.lua number
-- include lock/latch/latch.lua count
-- include lock/latch/latch.lua once
local left, refused = count()
if refused then
  return refused
end
left = left or 0
if not is_new() then
  return left
end
if left <= 0 then
  return 0
end
if ARGV[7] ~= '' and not is_new_in(KEYS[4], ARGV[7]) then
  return left
end
if left > tonumber(ARGV[2]) then
  return call('DECRBY', KEYS[1], ARGV[2])
end
open()
return 0
