-- Decide requests to buy, one after another, all at one instant.
-- KEYS[1] sale hash   KEYS[2] buyers hash   KEYS[3] requests hash   KEYS[4] orders stream
-- Goes on while its slot moves: its keys stay there.
-- ARGV[1] how many days follow   ARGV[2] where the last one ends, microseconds UTC
-- then two for each day: start, label; then three for each request: buyer, request, units
-- Reply: {'range', now_us}, nothing decided: the store's clock is outside these days
--        {'damaged', field, value}, nothing decided: no sale writes that into its hash
--        {letter or letter .. order, ...}, one for each request:
--        with the order:  A admitted   R the same request again (see the order's state)
--                         B bought already   U above the units of a buyer (none: his first)
--        without:         S sold out   E fewer units left than asked   F numbers of the day used up
--                         W not started   C closed   G recovering   N no such sale
--                         D what is known of the buyer is damaged
-- How orders and buyers stand in the keys: see records.hpp. The sequence is lane * 2^20 + a count
-- within the second, from 4096 * (recoveries mod 256) on: an order may be lost that was admitted in
-- this very second, or, by the clock of another server, in one that is to come; its buyer knows its
-- id.
-- A sale knows its store: in one that was started again, or that took its master's place, orders
-- may be missing, so nobody is admitted until the sale was recovered.
-- include sale/recovery.lua store
local id_epoch, id_lane = 1704067200, 1048576

-- The first 13 are figures: 7 are written when the sale is created, the others later.
local fields = {'capacity', 'sold', 'limit', 'unit_limit', 'orders', 'lane', 'digits',
                'epoch', 'last', 'taken', 'second', 'sequence', 'day',
                'opens', 'closes', 'type', 'closed', 'recovering', 'store'}
local sale = redis.call('hmget', KEYS[1], unpack(fields))
local days = tonumber(ARGV[1])
local first = 3 + 2 * days
local replies = {}
if not sale[1] then
  for at = first, #ARGV, 3 do replies[#replies + 1] = 'N' end
  return replies
end

-- What no sale writes is told by its name, not reckoned with.
local width, day, opens, closes = sale[7], sale[13], tonumber(sale[14]), tonumber(sale[15])
local damaged = not opens and sale[14] ~= '' and 14 or not closes and sale[15] ~= '' and 15
                or not sale[16] and 16
for at = 1, 13 do
  local value = tonumber(sale[at] or at > 7 and 0)
  if not value or value < 0 or value > 1e16 or value % 1 ~= 0 then
    damaged = at
    break
  end
  sale[at] = value
end
if damaged then return {'damaged', fields[damaged], sale[damaged] or ''} end
local capacity, sold, limit, unit_limit, orders, lane, digits, epoch, last, day_taken, last_second,
      last_sequence = unpack(sale, 1, 12)

local time = redis.call('time')
local now, now_text = time[1] * 1000000 + time[2], string.format('%s%06d', time[1], time[2])
if now < last then now, now_text = last, string.format('%.0f', last) end
if now < tonumber(ARGV[3]) or now >= tonumber(ARGV[2]) then return {'range', now_text} end

local shut
if sale[18] or (sale[19] and sale[19] ~= store_now()) then shut = 'G'
elseif sale[17] or (closes and now >= closes) then shut = 'C'
elseif opens and now < opens then shut = 'W' end

-- The label of today; never an earlier one than before, also if clients disagree on where days
-- begin.
local today = day or ''
for at = 3, first - 2, 2 do
  if now >= tonumber(ARGV[at]) and ARGV[at + 1] > today then today = ARGV[at + 1] end
end
local taken = today == day and day_taken or 0
local most = 10 ^ digits - 1

local second = math.floor(now / 1000000) - id_epoch
if second > 2147483647 then
  return redis.error_reply('ERR the 31 bits of seconds in ids ended in 2092')
end
local sequence, begins = last_sequence, lane * id_lane + epoch % 256 * 4096
local id_most = (lane + 1) * id_lane - 1
if second ~= last_second or sequence < begins or sequence > id_most then
  sequence = begins  -- the last id was of another second, or of the lane before a recovery
end

-- '%d' is printed much faster, and may end at 2^31.
local whole = capacity < 2147483648 and id_most < 2147483648 and '%d' or '%.0f'
local shape = 'a %d ' .. whole .. ' ' .. sale[16] .. today .. '%0' .. width .. 'd ' .. whole .. ' '
              .. now_text .. ' '

local names, older_names, older_requests = {}, nil, nil
local count = 0
for at = first, #ARGV, 3 do
  count = count + 1
  names[count] = ARGV[at]
end
if count == 0 then return replies end
local function place(buyer, request) return #buyer .. ':' .. buyer .. request end

-- The buyers that have orders. An order that is not its buyer's latest is in the hash of requests:
-- there is none where the latest is his first, and all that is counted for him.
local buyers, older = {}, {}
local records = redis.call('hmget', KEYS[2], unpack(names))
for i = 1, count do
  local record = records[i]
  if record then
    local buyer, request = names[i], ARGV[first + 3 * i - 2]
    local live, units, order, state, n, latest =
        string.match(record, '^(%d+) (%d+) ((%a) (%d+) %d+ %S+ %d+ %d+ (.+))$')
    if not live or math.max(#live, #units, #n) > 15 then  -- as numbers in Lua, exact
      buyers[buyer] = {damaged = true, n = 0}
    end
    buyers[buyer] = buyers[buyer] or {live = tonumber(live), units = tonumber(units), order = order,
                                      n = tonumber(n), request = latest}
    local is_only = n == '1' and live == (state == 'a' and '1' or '0')
    if latest ~= request and not is_only then
      older_names, older_requests = older_names or {}, older_requests or {}
      older_names[#older_names + 1] = place(buyer, request)
      older_requests[#older_names] = request
    end
  end
end
if older_names then
  for i, order in ipairs(redis.call('hmget', KEYS[3], unpack(older_names))) do
    older[older_names[i]] = order and order .. older_requests[i]
  end
end

local changed, moved = {}, nil
for i = 1, count do
  local buyer = names[i]
  local his = buyers[buyer]
  local request, units, same
  -- Most requests of a sale that is sold out: nothing of them need be looked at.
  local refusal = not his and (shut or sold >= capacity and unit_limit == 0 and 'S')
  if not refusal then
    local at = first + 3 * (i - 1)
    request, units = ARGV[at + 1], tonumber(ARGV[at + 2])
    same = his and (his.request == request and his.order or older[place(buyer, request)])
  end
  if refusal then
    replies[i] = refusal
  elseif his and his.damaged then
    replies[i] = 'D'
  elseif same then
    replies[i] = 'R' .. same
  elseif shut then
    replies[i] = shut
  elseif limit > 0 and his and his.live >= limit then
    replies[i] = 'B' .. his.order
  elseif unit_limit > 0 and units + (his and his.units or 0) > unit_limit then
    replies[i] = 'U' .. (his and his.order or '')
  elseif sold >= capacity then
    replies[i] = 'S'
  elseif units > capacity - sold then
    replies[i] = 'E'
  elseif taken >= most or sequence >= id_most then
    replies[i] = 'F'
  else
    sold, taken, sequence, orders = sold + units, taken + 1, sequence + 1, orders + 1
    if not his then
      his = {live = 0, units = 0, n = 0, order = false, request = false, changed = false}
      buyers[buyer] = his
    else
      local behind = place(buyer, his.request)
      older[behind] = his.order
      moved = moved or {}
      moved[#moved + 1], moved[#moved + 2] = behind, string.sub(his.order, 1, -#his.request - 1)
    end
    if not his.changed then
      his.changed = true
      changed[#changed + 1] = buyer
    end
    his.live, his.units, his.n, his.request = his.live + 1, his.units + units, his.n + 1, request
    his.order = string.format(shape, his.n, sequence, taken, units) .. request
    redis.call('xadd', KEYS[4], '*', 'order', his.order, 'buyer', buyer)
    replies[i] = 'A' .. his.order
  end
end

if #changed > 0 then
  local written = {}
  for i, buyer in ipairs(changed) do
    local his = buyers[buyer]
    written[2 * i - 1] = buyer
    written[2 * i] = string.format('%d ' .. whole .. ' ', his.live, his.units) .. his.order
  end
  redis.call('hset', KEYS[2], unpack(written))
  if moved then redis.call('hset', KEYS[3], unpack(moved)) end
  redis.call('hset', KEYS[1], 'sold', string.format(whole, sold), 'orders', orders,
             'last', now_text, 'day', today, 'taken', taken, 'second', second,
             'sequence', string.format(whole, sequence))
end
return replies
