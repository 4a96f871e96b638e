-- The scripts of WaitingRoom.
-- KEYS[1] room hash
-- KEYS[2] visitors hash: visitor to 'place' or, when it was drawn, 'place:position'
-- KEYS[3] called zset, KEYS[4] inside zset: position; score: until when, us
-- KEYS[5] heard: of each position 4 bytes, when its visitor was last heard of before he was called,
--         then when he was let in, in ticks
-- KEYS[6] entries: of each of the last entries 8 bytes, when it was, us
--
-- Places are numbers of arrival. At the opening those that there are become positions by the draw,
-- which callers reckon; a later place is its own position. The front goes up through the positions:
-- each is called (it has a slot) or passed over (nothing was heard of it for the hold). A visitor
-- who was called is let in when he asks next, and the rate allows it.
-- A reply {'none'}: there is no such room. {'damaged', field, value}: no room writes that.

-- part room
-- REQUIRES: part number
local call = redis.call
local names = {'rate', 'interval', 'limit', 'hold', 'born', 'places', 'front', 'entered', 'gone',
               'paced', 'skew', 'last',
               'opens', 'opened', 'drawn', 'units', 'paused', 'closed', 'mark', 'mark_front',
               'mark_before', 'mark_before_front',
               'stay', 'stays_since'}  -- older versions make rooms without the last two
local always = 12  -- so many of them stand in each room
local room, changes = {}, {}

local function set(name, value)
  room[name] = value
  changes[#changes + 1] = name
  changes[#changes + 1] = value
end

local values = call('HMGET', KEYS[1], unpack(names))
if not values[1] and call('EXISTS', KEYS[1]) == 0 then
  return {'none'}
end
for i, name in ipairs(names) do
  room[name] = number_in(values[i]) or tonumber(string.match(values[i] or '', '^%-?%d+%.%d+$'))
  if not room[name] and (values[i] or i <= always) then
    return {'damaged', name, values[i] or ''}
  end
end

-- The room's time never goes back, though the server's may: the time of the last change is known.
local time = call('TIME')
local clock = time[1] * 1000000 + time[2]
local now = clock + room.skew
if now < room.last then
  set('skew', room.skew + room.last - now)
  now = room.last
end
local hold, interval = room.hold * 1000, room.interval * 1000
local tick, gone_tick = 100000, 4294967295

-- The opening: those who are there are drawn.
if not room.opened and clock >= room.opens then
  set('opened', now)
  set('drawn', room.places)
  set('mark', now)
  set('mark_front', 0)
end

local function hear(position, ticks)
  call('SETRANGE', KEYS[5], 4 * (position - 1), struct.pack('<I4', ticks))
end

local function ticks_now()
  return math.floor((now - room.born) / tick) + 1
end

local function time_of(ticks)
  return math.max(room.opened, room.born + ticks * tick)
end

-- Of those inside, the room forgets them at the end of their stay, too.
local function forget_silent(key)
  local silent = call('ZRANGEBYSCORE', key, '-inf', now, 'LIMIT', 0, 200)
  if #silent > 0 then
    call('ZREM', key, unpack(silent))
    set('gone', room.gone + #silent)
  end
end

local function lets_nobody_in()
  return not room.opened or room.paused or room.closed or room.units == 0
end

-- Call the next ones, as many as there are slots and the rate has allowed since the last time. A
-- position is looked at once in its life, and a call looks at a thousand.
local function advance()
  forget_silent(KEYS[3])
  forget_silent(KEYS[4])
  if lets_nobody_in() or room.front == room.places then
    return
  end
  local step = interval / room.rate
  local paced = math.max(room.paced, now - math.max(step, math.min(interval, 1000000)))
  local free = room.limit - call('ZCARD', KEYS[3]) - call('ZCARD', KEYS[4])
  if free <= 0 or now - paced < step then
    return
  end
  -- Those who were called and were just here wait for the rate alone. More of them than it lets in
  -- soon would come in whatever order they ask in.
  local soon = math.max(1, math.ceil(500000 / step))
  free = math.min(free, soon - call('ZCOUNT', KEYS[3], now + hold - 2000000, '+inf'))
  if free <= 0 then
    return
  end
  local front, gone = room.front, room.gone
  local most = math.min(room.places, front + 1000)
  local heard = call('GETRANGE', KEYS[5], 4 * front, 4 * most - 1)
  while front < most do
    local at = 4 * (front - room.front) + 1
    local ticks = at + 3 <= #heard and struct.unpack('<I4', heard, at) or 0
    if ticks ~= gone_tick then
      local since = math.min(now, time_of(ticks))
      if since + hold <= now then
        gone = gone + 1
      elseif free > 0 and now - paced >= step then
        call('ZADD', KEYS[3], since + hold, front + 1)
        free = free - 1
        paced = paced + step
      else
        break
      end
    end
    front = front + 1
  end
  if front > room.front then
    set('front', front)
    set('gone', gone)
    set('paced', paced)
    set('last', now)
  end
end

-- How fast the front goes, by a mark of half a minute ago at most; while nobody waits it says
-- nothing.
local function measure()
  if room.front == room.places then
    if room.mark_front ~= room.front or room.mark_before then
      set('mark', now)
      set('mark_front', room.front)
      if room.mark_before then
        call('HDEL', KEYS[1], 'mark_before', 'mark_before_front')
        room.mark_before, room.mark_before_front = nil, nil
      end
    end
  elseif room.mark and now - room.mark > 15000000 then
    set('mark_before', room.mark)
    set('mark_before_front', room.mark_front)
    set('mark', now)
    set('mark_front', room.front)
  end
end

local function save()
  measure()
  if #changes > 0 then
    call('HSET', KEYS[1], unpack(changes))
  end
end

-- part visitor
-- ARGV[1] visitor   ARGV[2] the number of the draw that the caller has reckoned by; empty: none
-- ARGV[3] his position by that draw
local visitor = ARGV[1]
local place, position

-- Finds his place. True: his position is to be reckoned.
local function find()
  local value = call('HGET', KEYS[2], visitor)
  if not value then
    return false
  end
  local number, drawn = string.match(value, '^(%d+):?(%d*)$')
  place, position = number_in(number), number_in(drawn)
  if not place then
    return false
  end
  if room.opened and not position then
    if place > room.drawn then
      position = place
    elseif ARGV[2] == tostring(room.drawn) .. ':' .. tostring(place) then
      position = tonumber(ARGV[3])
      call('HSET', KEYS[2], visitor, string.format('%.0f:%.0f', place, position))
    else
      return true
    end
  end
  return false
end

local function to_be_drawn()
  save()
  return {'draw', place, room.drawn, call('HGET', KEYS[1], 'seed')}
end

-- Whether one more may go in now; else how many microseconds until then.
local function rate_allows()
  local ring = 65536
  local ago = room.entered - room.rate
  if ago >= 0 then
    local past = call('GETRANGE', KEYS[6], ago % ring * 8, ago % ring * 8 + 7)
    local left = #past == 8 and struct.unpack('<d', past) + interval - now or 0
    if left > 0 then
      return false, left
    end
  end
  call('SETRANGE', KEYS[6], room.entered % ring * 8, struct.pack('<d', now))
  set('entered', room.entered + 1)
  set('last', now)
  return true, 0
end

-- When he has been inside for the longest; 0: the room knows no longest stay.
local function end_of_stay()
  if not room.stay then
    return 0
  end
  local noted = call('GETRANGE', KEYS[5], 4 * (position - 1), 4 * position - 1)
  local began = time_of(#noted == 4 and struct.unpack('<I4', noted) or 0)
  return math.max(began, room.stays_since or 0) + room.stay * 1000
end

-- He is inside, and was heard of. A process of an older version may have let him stay for longer.
local function go_on_inside()
  local ends = end_of_stay()
  if ends > 0 and ends <= now then
    call('ZREM', KEYS[4], position)
    set('gone', room.gone + 1)
    return 'left', 0, 0
  end
  local until_us = ends > 0 and math.min(now + hold, ends) or now + hold
  call('ZADD', KEYS[4], until_us, position)
  return 'inside', until_us, 0, ends
end

-- How he stands, now that he was heard of: state, until when, how long until the rate lets him in,
-- when his stay ends.
local function stand()
  if not place then
    return 'left', 0, 0
  end
  if not room.opened then
    return 'enrolled', 0, 0
  end
  if position > room.front then
    hear(position, ticks_now())
    advance()
    if position > room.front then
      return 'waiting', 0, 0
    end
  else
    advance()
  end
  if call('ZSCORE', KEYS[4], position) then
    return go_on_inside()
  end
  if not call('ZSCORE', KEYS[3], position) then
    return 'left', 0, 0
  end
  local allowed, wait = false, 0
  if not lets_nobody_in() then
    allowed, wait = rate_allows()
  end
  if allowed then
    call('ZREM', KEYS[3], position)
    hear(position, ticks_now())
    return go_on_inside()
  end
  call('ZADD', KEYS[3], now + hold, position)
  return 'waiting', 0, wait
end

local function answer(state, until_us, wait, ends)
  save()
  ends = ends or 0
  return {state, place or 0, position or 0, room.front, room.places,
          until_us > 0 and until_us - room.skew or 0, math.ceil(wait), clock, room.opens or 0,
          room.units or -1, room.paused and 1 or 0, room.closed and 1 or 0,
          now - (room.mark_before or room.mark or now),
          room.front - (room.mark_before_front or room.mark_front or room.front),
          room.rate, room.interval, room.hold, ends > 0 and ends - room.skew or 0}
end

-- script create
-- Make a room, unless it is there. One that an older version has made is given the longest stay,
-- which begins now for those who are inside.
-- ARGV[1] seed   ARGV[2] SHA-256 of it   ARGV[3] opens, us; empty: now
-- then rate, interval, limit, hold, stay
-- Reply: as that of load
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
if redis.call('EXISTS', KEYS[1]) == 0 then
  -- Each raises WRONGTYPE where the key is no room's; else it is what a room left that was lost.
  redis.call('HGET', KEYS[2], '')
  redis.call('ZCARD', KEYS[3])
  redis.call('ZCARD', KEYS[4])
  redis.call('GETRANGE', KEYS[5], 0, 0)
  redis.call('GETRANGE', KEYS[6], 0, 0)
  redis.call('DEL', KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6])
  redis.call('HSET', KEYS[1], 'definition', table.concat(ARGV, ' ', 3, 7), 'seed', ARGV[1],
             'commitment', ARGV[2], 'rate', ARGV[4], 'interval', ARGV[5], 'limit', ARGV[6],
             'hold', ARGV[7], 'born', now, 'places', 0, 'front', 0, 'entered', 0, 'gone', 0,
             'paced', 0, 'skew', 0, 'last', now)
  if ARGV[3] == '' then
    redis.call('HSET', KEYS[1], 'opened', now, 'drawn', 0, 'mark', now, 'mark_front', 0)
  else
    redis.call('HSET', KEYS[1], 'opens', ARGV[3])
  end
end
if redis.call('HGET', KEYS[1], 'definition') and
   redis.call('HSETNX', KEYS[1], 'stay', ARGV[8]) == 1 then
  redis.call('HSET', KEYS[1], 'stays_since', now)
end
return redis.call('HMGET', KEYS[1], 'definition', 'stay')

-- script load
-- Reply: {'opens rate interval limit hold' with which it was made, stay}; nil: there is no such
-- room, or it knows no longest stay
return redis.call('HMGET', KEYS[1], 'definition', 'stay')

-- script enter
-- Give a visitor a place, unless he has one, and say how he stands.
-- Reply: as answer() has it, or {'draw', place, how many are drawn, seed}: ask again with the
-- position
-- include store/number.lua number
-- include room/room.lua room
-- include room/room.lua visitor
if find() then
  return to_be_drawn()
end
local state, until_us, wait, ends = stand()
if state == 'left' and not room.closed then
  place = room.places + 1
  position = room.opened and place
  set('places', place)
  call('HSET', KEYS[2], visitor, place)
  if position then
    hear(position, ticks_now())
  end
  state, until_us, wait, ends = stand()
end
return answer(state, until_us, wait, ends)

-- script state
-- Say how a visitor stands, and let him in when it is his turn.
-- Reply: as that of enter
-- include store/number.lua number
-- include room/room.lua room
-- include room/room.lua visitor
if find() then
  return to_be_drawn()
end
return answer(stand())

-- script leave
-- Give up the place ARGV[4] of a visitor.
-- Reply: {how he stood}, or as that of enter
-- include store/number.lua number
-- include room/room.lua room
-- include room/room.lua visitor
if find() then
  return to_be_drawn()
end
local state = 'left'
if place and place == tonumber(ARGV[4]) then
  call('HDEL', KEYS[2], visitor)
  if not room.opened then
    state = 'enrolled'
  elseif position > room.front then
    hear(position, gone_tick)
    state = 'waiting'
  elseif call('ZREM', KEYS[4], position) == 1 then
    state = 'inside'
  elseif call('ZREM', KEYS[3], position) == 1 then
    state = 'waiting'
  end
  advance()
end
save()
return {state}

-- script status
-- Reply: {rate, interval, limit, hold, opens or 0, places, front, called, inside, entered, gone,
--         units or -1, 1 open, 1 paused, 1 closed, stay or 0}
-- include store/number.lua number
-- include room/room.lua room
advance()
save()
return {room.rate, room.interval, room.limit, room.hold, room.opens or 0, room.places, room.front,
        call('ZCARD', KEYS[3]), call('ZCARD', KEYS[4]), room.entered, room.gone, room.units or -1,
        room.opened and 1 or 0, room.paused and 1 or 0, room.closed and 1 or 0, room.stay or 0}

-- script change
-- ARGV: pairs of a field and its value; empty: the field goes. What was so far happens first.
-- Reply: {'done'}
-- include store/number.lua number
-- include room/room.lua room
advance()
save()
for i = 1, #ARGV, 2 do
  if ARGV[i + 1] == '' then
    call('HDEL', KEYS[1], ARGV[i])
  else
    call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
  end
end
if room.opened then  -- how fast it went before says nothing of how it goes now
  call('HSET', KEYS[1], 'mark', now, 'mark_front', room.front)
  call('HDEL', KEYS[1], 'mark_before', 'mark_before_front')
end
return {'done'}

-- script draw
-- Reply: {commitment, seed; empty before the opening, how many were drawn}
-- include store/number.lua number
-- include room/room.lua room
save()
local draw = call('HMGET', KEYS[1], 'commitment', 'seed')
return {draw[1], room.opened and draw[2] or '', room.drawn or 0}

-- script remove
-- Reply: 1, or 0 where there was none
local there = redis.call('EXISTS', KEYS[1])
for key, look in ipairs({'HGET', 'HGET', 'ZSCORE', 'ZSCORE'}) do
  redis.call(look, KEYS[key], '')  -- or WRONGTYPE, before anything is removed
end
redis.call('GETRANGE', KEYS[5], 0, 0)
redis.call('GETRANGE', KEYS[6], 0, 0)
redis.call('UNLINK', KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6])
return there
