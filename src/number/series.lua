-- The scripts of Series. A series is one hash without a TTL:
--   definition, prefix   what it is
--   last                 when the last number was given, microseconds UTC
--   day, taken           the day of the last number, and how many that day has given
--   20260102 ...         how many a day has given that was left, of the latest days
--   since                from this day on one that is not there has given none
-- Before there was `day`, each day had a counter in a key of its own, which expired. That layout is
-- taken over with the first number of a day.
-- In both: KEYS[1] state hash   KEYS[2..p+1] the counters of p consecutive days, of old
-- ARGV[1] where the last of these days ends, microseconds UTC
-- ARGV[2..2p+1] two for each day: where it starts, its label

-- part days
-- REQUIRES: part number
-- Of a counter in a key of its own; raises WRONGTYPE for what is none.
local function count_of_old(key)
  local text = redis.call('get', key)
  if text and not number_in(text) then redis.call('hkeys', key) end
  return text
end
local function started(now, least, days)
  local label, at
  for i = 1, days do
    local day = ARGV[2 * i + 1]
    if now >= tonumber(ARGV[2 * i]) and day >= least then label, at = day, i end
  end
  return label, at
end
-- No series is that old: 2024-01-01. A machine without a clock of its own begins at 1970.
local function never_set(now)
  return now < 1704067200000000
end
local function outside(now, days)
  return now < tonumber(ARGV[2]) or now >= tonumber(ARGV[1])
end

-- part other
-- Whether the series is another one than its caller's; it may have been made before definitions, or
-- prefixes, were stored.
local function is_other(definition, prefix, days)
  local own = 2 * days + 1
  return definition and definition ~= ARGV[own + 3] and definition ~= ARGV[own + 5]
    or prefix and prefix ~= ARGV[own + 4]
end

-- script next
-- Take the next numbers of a series, all of one day.
-- ARGV[2p+2] how many; 0: only the caller's latest number is noted   [2p+3] largest number of a day
-- ARGV[2p+4] definition   [2p+5] prefix
-- ARGV[2p+6] the definition as it was before   [2p+7] how many days that were left are remembered
-- ARGV[2p+8] day of the latest number that the caller was given, '': none   [2p+9] that number
-- Reply: {'issued', now_us, day, first, how many} (fewer than asked: the day is full)
--        {'full', now_us, day}   {'range', now_us} (outside the days)
--        {'unset', now_us} (the clock was never set)
--        {'lost', now_us, day} (numbers of it were given, and nobody knows how many)
--        {'mismatch', stored definition, stored prefix}
-- include store/number.lua number
-- include number/series.lua days
-- include number/series.lua other
-- include number/series.lua draw
return draw(#KEYS - 1)

-- script next_of_wish
-- The same for one wish, of which a copy gets the same numbers.
-- KEYS[p+2] what the wish got   ARGV[2p+10] for how long that is kept, ms
-- Reply: as number/next; {'other', how many} (the wish has asked for so many before)
-- include store/number.lua number
-- include number/series.lua days
-- include number/series.lua other
-- include number/series.lua draw
local got, many = KEYS[#KEYS], ARGV[2 * (#KEYS - 2) + 2]
local before = redis.call('hmget', got, 'now', 'day', 'first', 'granted', 'asked')
if before[1] then
  -- Written by another definition they would be numbers that nobody was given.
  local state = redis.call('hmget', KEYS[1], 'definition', 'prefix')
  if is_other(state[1], state[2], #KEYS - 2) then return {'mismatch', state[1], state[2]} end
  for _, field in ipairs({1, 3, 4, 5}) do
    if not number_in(before[field]) then redis.call('get', got) end  -- raises WRONGTYPE
  end
  if before[5] ~= many then return {'other', tonumber(before[5])} end
  return {'issued', tonumber(before[1]), before[2], tonumber(before[3]), tonumber(before[4])}
end
redis.call('get', got)  -- raises WRONGTYPE for a hash of something else
local drawn = draw(#KEYS - 2)
if drawn[1] == 'issued' then
  redis.call('hset', got, 'now', string.format('%.0f', drawn[2]), 'day', drawn[3],
             'first', string.format('%.0f', drawn[4]), 'granted', string.format('%.0f', drawn[5]),
             'asked', many)
  redis.call('pexpire', got, ARGV[#ARGV])
end
return drawn

-- part draw
-- As number/next, of which `days` counters are among the keys.
-- REQUIRES: parts days, other
local function draw(days)
  local own = 2 * days + 1
  local definition, prefix = ARGV[own + 3], ARGV[own + 4]
  local state = redis.call('hmget', KEYS[1], 'definition', 'prefix', 'last', 'day', 'taken')
  -- A series that was made before prefixes were stored takes that of its next caller.
  if is_other(state[1], state[2], days) then
    return {'mismatch', state[1], state[2] or prefix}
  end
  if not ((state[1] or state[3]) and number_in(state[3] or '0') and number_in(state[5] or '0')) then
    redis.call('get', KEYS[1])  -- raises WRONGTYPE for a hash of something else
  end

  local time = redis.call('time')
  local last = tonumber(state[3] or 0)
  local now = math.max(time[1] * 1000000 + time[2], last)
  if never_set(now) then return {'unset', time[1] * 1000000 + time[2]} end
  if outside(now, days) then return {'range', now} end
  -- Never an earlier day than before, also if clients disagree on where days begin.
  local today, at = started(now, state[4] or '', days)
  today = today or state[4]

  local taken
  if today == state[4] then
    taken = tonumber(state[5])
  else
    local known, of_old = redis.call('hget', KEYS[1], today), count_of_old(KEYS[1 + at])
    if last >= tonumber(ARGV[2 * at]) and not (state[4] or of_old) then
      return {'lost', now, today}
    end
    taken = math.max(tonumber(known or 0), tonumber(of_old or 0))
  end
  -- A server that took its master's place may have lost numbers: the caller does not get its own
  -- again.
  if today == ARGV[own + 7] then
    taken = math.max(taken, tonumber(ARGV[own + 8]))
  end
  local asked = tonumber(ARGV[own + 1])
  local granted = math.min(asked, tonumber(ARGV[own + 2]) - taken)
  local is_raise = asked == 0 and today == ARGV[own + 7] and granted == 0
  if granted <= 0 and not is_raise then return {'full', now, today} end

  if today ~= state[4] then
    if state[4] then
      redis.call('hset', KEYS[1], state[4], state[5])
      local labels = {}
      for _, field in ipairs(redis.call('hkeys', KEYS[1])) do
        if string.find(field, '^%d+$') and field < today then labels[#labels + 1] = field end
      end
      table.sort(labels)
      local surplus = #labels - tonumber(ARGV[own + 6])
      for i = 1, surplus do redis.call('hdel', KEYS[1], labels[i]) end
      if surplus > 0 then redis.call('hset', KEYS[1], 'since', labels[surplus + 1] or today) end
    else
      redis.call('hset', KEYS[1], 'since', state[1] and today or '0')
    end
    redis.call('hset', KEYS[1], 'definition', definition, 'prefix', prefix, 'day', today)
  end
  redis.call('hset', KEYS[1], 'last', string.format('%.0f', now),
             'taken', string.format('%.0f', taken + granted))
  return {'issued', now, today, taken + 1, granted}
end

-- script repair
-- Take a series back from the future into which a glitch of the clock has thrown it.
-- KEYS[p+2] the counter of the day of the last number, of old   KEYS[p+3] journal, a stream
-- ARGV[2p+2] how many numbers of today were given, by the caller's own books; '' not told
-- ARGV[2p+3] who repairs   [2p+4] why   [2p+5] the stored definition, as the days were made for it
-- ARGV[2p+6] the definition of this layout   [2p+7] largest number of a day
-- ARGV[2p+8] '1': only look   [2p+9] last_us, as the caller saw it   [2p+10] its day
-- Reply: {'range', now_us}   {'unset', now_us}   {'changed'} (since the caller saw it)
--        {outcome, now_us, last_us, day, taken, today, given}; outcome:
--        'repaired'   'sound' (nothing to repair)   'fewer' (more than told were given)
--        'unknown' (nobody knows how many of today were given)   -1: not known
-- include store/number.lua number
-- include number/series.lua days
local days = #KEYS - 3
local own = 2 * days + 1
local state = redis.call('hmget', KEYS[1], 'definition', 'last', 'day', 'taken', 'since')
if state[1] ~= ARGV[own + 4] or (not state[3] and (state[2] or '0') ~= ARGV[own + 8]) then
  return {'changed'}
end

local time = redis.call('time')
local now = time[1] * 1000000 + time[2]
if never_set(now) then return {'unset', now} end
if outside(now, days) then return {'range', now} end
local today, at = started(now, '', days)
if not (number_in(state[2] or '0') and number_in(state[4] or '0')) then
  redis.call('get', KEYS[1])  -- raises WRONGTYPE
end
local last, day, taken = tonumber(state[2] or 0), state[3] or '', tonumber(state[4] or -1)
-- Another client's midnight may come before ours; that is no glitch.
if last <= now and day > today then today = day end

local given
if today == day then
  given = taken
else
  local known, of_old = redis.call('hget', KEYS[1], today), count_of_old(KEYS[1 + at])
  if known or of_old then
    given = math.max(tonumber(known or 0), tonumber(of_old or 0))
  elseif last < tonumber(ARGV[2 * at]) or (state[5] and today >= state[5]) then
    given = 0
  end
end
local function answer(outcome, count)
  return {outcome, now, last, day, taken, today, count or given or -1}
end

local told = tonumber(ARGV[own + 1])
if told and told < (given or 0) then return answer('fewer') end
if not told and not given then return answer('unknown') end
if last <= now and given and (told or given) == given then return answer('sound') end
if ARGV[own + 7] == '1' then return answer('repaired', told) end

redis.call('xadd', KEYS[#KEYS], 'MAXLEN', '1000', '*',
           'from_last', string.format('%.0f', last), 'from_day', day, 'from_taken', taken,
           'last', string.format('%.0f', now), 'day', today,
           'taken', string.format('%.0f', told or given), 'by', ARGV[own + 2], 'why', ARGV[own + 3])
if day ~= '' and day ~= today then
  redis.call('hset', KEYS[1], day, state[4])
elseif day == '' then
  local of_old = count_of_old(KEYS[#KEYS - 1])
  if of_old then redis.call('hset', KEYS[1], ARGV[own + 9], of_old) end
end
if not state[5] then redis.call('hset', KEYS[1], 'since', today) end
redis.call('hdel', KEYS[1], today)
redis.call('hset', KEYS[1], 'definition', ARGV[own + 5], 'last', string.format('%.0f', now),
           'day', today, 'taken', string.format('%.0f', told or given))
return answer('repaired', told)
