-- The scripts of RateLimiter.
-- KEYS[1] definition hash   KEYS[2] free permits
-- KEYS[3] log: zset of 1 length byte, id, 4 bytes number of permits; score: when taken, ms
-- ARGV[1] rate   ARGV[2] interval, ms   ARGV[3] kind: 0 overall, 1 per client
-- ARGV[4] keep alive, ms; 0: for ever

-- part define
-- REQUIRES: part number
local call = redis.call
local no_limiter = 'WRONGTYPE the key of this name is not a rate limiter; nothing was written'

-- Raises Redis's own WRONGTYPE error.
local function refuse(key)
  call('LLEN', key)
end

local function check_entry(entry)
  if #entry ~= 5 + (string.byte(entry) or 0) then
    refuse(KEYS[3])
  end
end

-- Before the limiter is defined, or its log removed: its keys hold nothing, or what a limiter left.
local function check_keys()
  local free = call('GET', KEYS[2])
  if free and not number_in(free) then
    refuse(KEYS[2])
  end
  local entry = call('ZRANGE', KEYS[3], 0, 0)[1]
  if entry then
    check_entry(entry)
  end
end

local function define()
  call('HSET', KEYS[1], 'rate', ARGV[1], 'interval', ARGV[2], 'type', ARGV[3], 'keepAliveTime',
       ARGV[4])
end

-- script acquire
-- Take permits of a rate. What was taken in the last interval lies in a log; the rest is free.
-- ARGV[5] 1: another rate or interval is taken as it is
-- ARGV[6] the rate by which the caller last counted; 0: none
-- ARGV[7] how many permits; 0: only look   ARGV[8] id of the request, at most 255 bytes
-- Reply: {'granted', free permits left, rate}
--        {'wait', us until there are enough, or may be, rate, strangers}: 1 if programs that are
--        not ours take permits too
--        {'mismatch', rate, interval, kind} · {'above', rate}: never so many
-- include lock/hold/parts.lua denied
-- include store/number.lua number
-- include lock/limiter/limiter.lua define
local form = '<Bc0I4'
local step = 1000  -- entries that one call reads of a long log, or forgets

local defined = redis.pcall('HMGET', KEYS[1], 'rate', 'interval', 'type', 'keepAliveTime',
                            'sluice:counted')
if not (defined[1] or defined[2] or defined[3]) or not number_in(defined[4] or '0') then
  if defined.err or call('EXISTS', KEYS[1]) == 1 then
    return redis.error_reply(denied(defined, 'HMGET', no_limiter))
  end
  check_keys()
  define()
  defined = {ARGV[1], ARGV[2], ARGV[3], ARGV[4]}
end
local rate, interval = number_in(defined[1]), number_in(defined[2])
local same = defined[1] == ARGV[1] and defined[2] == ARGV[2]
local sound = rate and interval and rate > 0 and interval > 0
if not sound or defined[3] ~= ARGV[3] or not (same or ARGV[5] == '1') then
  return {'mismatch', defined[1] or '', defined[2] or '', defined[3] or ''}
end
local wanted = tonumber(ARGV[7])
if wanted > rate then
  return {'above', defined[1]}
end

local time = call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local now_text = string.format('%.3f', now)
local due = string.format('%.3f', now - interval)

local strangers = 0
local function permits_of(entry)
  check_entry(entry)
  local _, permits = struct.unpack(form, entry)
  if string.sub(entry, 14, 17) ~= '\0\0\0\0' then  -- ids of ours end with a small number
    strangers = 1
  end
  return permits
end

local function sum(entries)
  local permits = 0
  for _, entry in ipairs(entries) do
    permits = permits + permits_of(entry)
  end
  return permits
end

-- What was taken an interval ago is free again. To count the whole log costs more, and corrects
-- what other programs left: a number of another rate, permits without an entry. A long log is not
-- counted: the field sluice:counted of an overall limiter says by which rate the number came about.
local function count_free()
  if call('ZCOUNT', KEYS[3], '(' .. due, '+inf') == 0 then
    check_keys()
    call('DEL', KEYS[3])
    return rate
  end
  local text = call('GET', KEYS[2])
  local free = text and (number_in(text) or refuse(KEYS[2]))
  local back = call('ZRANGEBYSCORE', KEYS[3], '-inf', due, 'LIMIT', 0, step)
  local more = sum(back)
  local doubtful = not free or ARGV[6] ~= defined[1] or free + more > rate
  if doubtful and (not free or ARGV[3] == '1' or call('ZCARD', KEYS[3]) <= step) then
    call('ZREMRANGEBYSCORE', KEYS[3], '-inf', due)
    return rate - sum(call('ZRANGE', KEYS[3], 0, -1))
  end
  if #back > 0 then
    call('ZREMRANGEBYRANK', KEYS[3], 0, #back - 1)
  end
  if ARGV[3] == '0' then
    more = more + rate - (tonumber(defined[5]) or rate)
  end
  return math.min(free + more, rate)
end

-- Microseconds until so many more are free, or until the first entries of a long log are; nil: the
-- log has not so many.
local function time_until(missing)
  local at_once = 100
  for first = 0, step, at_once do
    local log = call('ZRANGE', KEYS[3], first, first + at_once - 1, 'WITHSCORES')
    for i = 1, #log, 2 do
      missing = missing - permits_of(log[i])
      if missing <= 0 or first == step then
        return math.max(0, math.floor((log[i + 1] + interval - now) * 1000 + 0.5))
      end
    end
    if #log == 0 then
      return nil
    end
  end
end

local free = count_free()
local reply = 'granted'
local wait = 0
local entry = struct.pack(form, #ARGV[8], ARGV[8], wanted)
if wanted > 0 and not call('ZSCORE', KEYS[3], entry) then
  if wanted > free then
    -- The clock was set back, or a peer's is fast: nothing was taken later than now.
    for _, ahead in ipairs(call('ZRANGEBYSCORE', KEYS[3], '(' .. now_text, '+inf',
                                'LIMIT', 0, step)) do
      call('ZADD', KEYS[3], now_text, ahead)
    end
    wait = time_until(wanted - free)
    if not wait then
      free = rate - sum(call('ZRANGE', KEYS[3], 0, -1))
      wait = wanted > free and time_until(wanted - free) or 0
    end
  end
  if wanted > free then
    reply = 'wait'
  else
    call('ZADD', KEYS[3], now_text, entry)
    free = free - wanted
  end
end

call('SET', KEYS[2], free)
if ARGV[3] == '0' and defined[5] ~= defined[1] then
  call('HSET', KEYS[1], 'sluice:counted', rate)
end
local keep = tonumber(defined[4]) or 0
if keep > 0 then
  call('PEXPIRE', KEYS[1], keep)
elseif ARGV[3] == '1' then
  keep = 2 * interval  -- all of this client's is free again by then
else
  keep = call('PTTL', KEYS[1])
end
if keep > 0 then
  call('PEXPIRE', KEYS[2], keep)
  call('PEXPIRE', KEYS[3], keep)
end
return {reply, reply == 'wait' and wait or math.max(free, 0), rate, strangers}

-- script give_back
-- Give back what a request has taken whose caller is gone.
-- ARGV[1] how many permits   ARGV[2] id of the request
-- Reply: how many are given back.
-- include store/number.lua number
local is_ours = number_in(redis.call('GET', KEYS[2]))
local entry = struct.pack('<Bc0I4', #ARGV[2], ARGV[2], ARGV[1])
local back = ARGV[1] * redis.call('ZREM', KEYS[3], entry)
redis.call(unpack(back > 0 and is_ours and {'INCRBY', KEYS[2], back} or {'EXISTS', KEYS[2]}))
return back

-- script set_rate
-- Change the rate of a limiter, or define it. The next acquire counts the free permits anew.
-- Reply: 1 done; 0 it is of another kind.
-- include lock/hold/parts.lua denied
-- include store/number.lua number
-- include lock/limiter/limiter.lua define
local kind = redis.pcall('HGET', KEYS[1], 'type')
if type(kind) == 'table' or not kind and call('EXISTS', KEYS[1]) == 1 then
  return redis.error_reply(denied(kind, 'HGET', no_limiter))
end
if kind and kind ~= ARGV[3] then
  return 0
end
if not kind then
  check_keys()
end
define()
-- What is there has the time to live of the definition before.
local keep = tonumber(ARGV[4])
for i, key in ipairs(KEYS) do
  local ms = keep == 0 and i > 1 and ARGV[3] == '1' and 2 * ARGV[2] or keep
  call(unpack(ms > 0 and {'PEXPIRE', key, ms} or {'PERSIST', key}))
end
return 1
