-- How orders and buyers stand in the keys: see records.hpp.

-- script put
-- Write orders that a database has, as if they had been admitted.
-- KEYS[1] sale hash   KEYS[2] buyers hash   KEYS[3] requests hash
-- ARGV: four for each order: buyer, order, label of the day, its number within the day
-- Reply: how many were not there before, or in place of another; nil when there is no such sale
local id_epoch, id_lane = 1704067200, 1048576
local sale = redis.call('hmget', KEYS[1], 'capacity', 'sold', 'orders', 'last', 'day', 'taken',
                        'second', 'sequence', 'lane')
if not sale[1] then return false end
local sold, orders, last = tonumber(sale[2]), tonumber(sale[3]), tonumber(sale[4] or 0)
local day, taken = sale[5] or '', tonumber(sale[6] or 0)
local second, sequence, lane = tonumber(sale[7] or -1), tonumber(sale[8] or 0), sale[9] * id_lane

local function parts(order)
  local state, n, in_second, number, units, issued, request =
      string.match(order, '^(%a) (%d+) (%d+) (%S+) (%d+) (%d+) (.+)$')
  if not state then return nil end  -- damaged, so it is written again
  return {text = order, live = state == 'a', n = tonumber(n), sequence = tonumber(in_second),
          number = number, units = tonumber(units), issued = tonumber(issued), request = request}
end

local function without_request(order) return string.sub(order.text, 1, -#order.request - 1) end

local written = 0
for at = 1, #ARGV, 4 do
  local buyer, order = ARGV[at], parts(ARGV[at + 1])
  local record = redis.call('hget', KEYS[2], buyer)
  local live, units, latest = 0, 0
  if record then
    local his_live, his_units, text = string.match(record, '^(%d+) (%d+) (.+)$')
    latest = parts(text or '')
    if latest then live, units = tonumber(his_live), tonumber(his_units) end
  end
  local place = #buyer .. ':' .. buyer .. order.request
  local there = latest
  if latest and latest.request ~= order.request then
    local earlier = redis.call('hget', KEYS[3], place)
    there = earlier and parts(earlier .. order.request)
  end
  if not there or string.sub(there.text, 2) ~= string.sub(order.text, 2) then
    written = written + 1
    if not there then
      orders = orders + 1
    elseif there.live then
      live, units, sold = live - 1, units - there.units, sold - there.units
    end
    live, units, sold = live + 1, units + order.units, sold + order.units
    if latest and there ~= latest and latest.n >= order.n then
      redis.call('hset', KEYS[3], place, without_request(order))
    else
      if latest and there ~= latest then
        redis.call('hset', KEYS[3], #buyer .. ':' .. buyer .. latest.request,
                   without_request(latest))
        redis.call('hdel', KEYS[3], place)
      end
      latest = order
    end
    redis.call('hset', KEYS[2], buyer, string.format('%d %.0f ', live, units) .. latest.text)
  end
  if ARGV[at + 2] > day then day, taken = ARGV[at + 2], 0 end
  if ARGV[at + 2] == day then taken = math.max(taken, tonumber(ARGV[at + 3])) end
  last = math.max(last, order.issued)
  local issued_in = math.floor(order.issued / 1000000) - id_epoch
  if issued_in > second then second, sequence = issued_in, lane end
  if issued_in == second and order.sequence >= lane and order.sequence < lane + id_lane then
    sequence = math.max(sequence, order.sequence)
  end
end
redis.call('hset', KEYS[1], 'sold', string.format('%.0f', sold), 'orders', orders,
           'last', string.format('%.0f', last), 'day', day, 'taken', string.format('%.0f', taken),
           'second', second, 'sequence', string.format('%.0f', sequence))
return written

-- script give_back
-- Return units of an order to the sale, once.
-- KEYS[1] sale hash   KEYS[2] buyers hash   KEYS[3] requests hash   KEYS[4] returned hash
-- ARGV[1] buyer   ARGV[2] request   ARGV[3] number of the order   ARGV[4] id:seq of the return
-- ARGV[5] units   ARGV[6] letter of the state in which the order ended; 'a': a part of it goes on
-- Reply: 1 now, 0 before, -1 the store has no such order, -2 the sale is archived
local sale = redis.call('hmget', KEYS[1], 'capacity', 'sold', 'archived', 'given_back')
if sale[3] then return -2 end
if redis.call('hexists', KEYS[4], ARGV[4]) == 1 then return 0 end
local record = redis.call('hget', KEYS[2], ARGV[1])
if not sale[1] or not record then return -1 end
local live, units, latest = string.match(record, '^(%d+) (%d+) (.+)$')
if not live then return -1 end
local place = #ARGV[1] .. ':' .. ARGV[1] .. ARGV[2]
local order = latest
if string.match(latest, '^%a %d+ %d+ %S+ %d+ %d+ (.+)$') ~= ARGV[2] then
  order = redis.call('hget', KEYS[3], place)
end
local state, number = string.match(order or '', '^(%a) %d+ %d+ (%S+) ')
if number ~= ARGV[3] or state ~= 'a' then return -1 end

redis.call('hset', KEYS[4], ARGV[4], ARGV[5])
local ended = ARGV[6] .. string.sub(order, 2)
if order == latest then latest = ended
else redis.call('hset', KEYS[3], place, ended) end  -- without its request, as it was
if ARGV[6] ~= 'a' then live = live - 1 end
redis.call('hset', KEYS[2], ARGV[1], string.format('%d %.0f ', live, units - ARGV[5]) .. latest)
redis.call('hset', KEYS[1], 'sold', string.format('%.0f', sale[2] - ARGV[5]),
           'given_back', string.format('%.0f', (sale[4] or 0) + ARGV[5]))
return 1

-- script change_stock
-- Change what there is to sell in all, once for each change; changes come one after another.
-- KEYS[1] sale hash   ARGV[1] which change of the sale: 1, 2, 3 ...   ARGV[2] units more, or fewer
-- Reply: 1 it is changed; 0 refused: more are sold, or the sale is archived; nil no such sale;
--        -1 the one before it is lost here
local sale = redis.call('hmget', KEYS[1], 'capacity', 'sold', 'changes', 'refused', 'archived')
if not sale[1] then return false end
if tonumber(ARGV[1]) <= tonumber(sale[3] or 0) then return sale[4] == ARGV[1] and 0 or 1 end
if tonumber(ARGV[1]) > (sale[3] or 0) + 1 then return -1 end
local capacity = sale[1] + ARGV[2]
local refused = sale[5] or (ARGV[2] + 0 < 0 and capacity < tonumber(sale[2]))
if refused then
  redis.call('hset', KEYS[1], 'changes', ARGV[1], 'refused', ARGV[1])
  return 0
end
redis.call('hset', KEYS[1], 'changes', ARGV[1], 'capacity', string.format('%.0f', capacity))
return 1

-- script remove
-- Delete some fields of a hash; one step of an archive.
-- KEYS[1] a hash   ARGV[1] cursor   ARGV[2] about how many
-- Reply: the next cursor; nil when the hash is gone
if redis.call('exists', KEYS[1]) == 0 then return false end
local page = redis.call('hscan', KEYS[1], ARGV[1], 'count', ARGV[2])
local fields = {}
for i = 1, #page[2], 2 do fields[#fields + 1] = page[2][i] end
for at = 1, #fields, 1000 do
  redis.call('hdel', KEYS[1], unpack(fields, at, math.min(at + 999, #fields)))
end
return page[1]
