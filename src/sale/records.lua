-- How orders and buyers stand in the keys: see records.hpp.

-- script put
-- Write orders that a recovery has found, each where it belongs; the counters of the sale are its
-- last step. An order that has ended somewhere has ended.
-- KEYS[1] sale hash   KEYS[2] buyers hash   KEYS[3] requests hash
-- ARGV[1] token of the recovery   ARGV[2] 1: the database has them, so that none but they are the
-- n-th of their buyers; 2: the same, and they had ended and stand again
-- then two for each order: buyer, order
-- Reply: how many were not there before, or in place of another; -1 another recovery has begun
-- include sale/recovery.lua not_mine
if not_mine() then return -1 end

local function parts(order)
  local state, n, units, request =
      string.match(order, '^(%a) (%d+) %d+ %S+ (%d+) %d+ (.+)$')
  if not state or math.max(#n, #units) > 15 then return nil end  -- damaged, so it is written again
  return {text = order, live = state == 'a', n = tonumber(n), units = tonumber(units),
          request = request}
end

local function without_request(order) return string.sub(order.text, 1, -#order.request - 1) end

local written = 0
for at = 3, #ARGV, 2 do
  local buyer, order = ARGV[at], parts(ARGV[at + 1])
  local record = redis.call('hget', KEYS[2], buyer)
  local live, units, latest = 0, 0
  if record then
    local his_live, his_units, text = string.match(record, '^(%d+) (%d+) (.+)$')
    latest = parts(text or '')
    if latest and math.max(#his_live, #his_units) <= 15 then  -- as numbers in Lua, exact
      live, units = tonumber(his_live), tonumber(his_units)
    end
  end
  local place = #buyer .. ':' .. buyer .. order.request
  local there = latest
  if latest and latest.request == order.request then
    redis.call('hdel', KEYS[3], place)  -- an older one of a record that was lost for a while
  else
    local earlier = redis.call('hget', KEYS[3], place)
    there = earlier and parts(earlier .. order.request)
  end
  local same = there and string.sub(there.text, 2) == string.sub(order.text, 2)
  if not same then written = written + 1
  elseif not there.live and (order.live and ARGV[2] ~= '2' or ARGV[2] == '0') then order = there end
  local is_latest = not latest or there == latest or latest.n < order.n
                    or (ARGV[2] ~= '0' and latest.n == order.n)
  if not same or there.text ~= order.text or (is_latest and there ~= latest) then
    if there and there.live and (latest or not same) then
      live, units = live - 1, units - there.units
    end
    if order.live then live, units = live + 1, units + order.units end
    if is_latest then
      if latest and there ~= latest then
        redis.call('hset', KEYS[3], #buyer .. ':' .. buyer .. latest.request,
                   without_request(latest))
      end
      if there ~= latest or not there then redis.call('hdel', KEYS[3], place) end
      latest = order
    else
      redis.call('hset', KEYS[3], place, without_request(order))
    end
    redis.call('hset', KEYS[2], buyer, string.format('%.0f %.0f ', math.max(live, 0),
                                                     math.max(units, 0)) .. latest.text)
  end
end
return written

-- script take_out
-- Remove an order that no database can take, as another has its place there.
-- KEYS[1] sale hash   KEYS[2] buyers hash   KEYS[3] requests hash
-- ARGV[1] buyer   ARGV[2] his record as it was   ARGV[3] as it is to be; empty: none
-- ARGV[4] field of the requests to remove   ARGV[5] units
-- Reply: 1; 0 the record has changed: look again; -3 nobody may change the sale now
-- include sale/recovery.lua store
-- include sale/recovery.lua is_shut
local sale = redis.call('hmget', KEYS[1], 'sold', 'orders', 'recovering', 'store')
if is_shut(sale[3], sale[4]) then return -3 end
if redis.call('hget', KEYS[2], ARGV[1]) ~= ARGV[2] then return 0 end
if ARGV[3] == '' then redis.call('hdel', KEYS[2], ARGV[1])
else redis.call('hset', KEYS[2], ARGV[1], ARGV[3]) end
redis.call('hdel', KEYS[3], ARGV[4])
redis.call('hset', KEYS[1], 'sold', string.format('%.0f', sale[1] - ARGV[5]), 'orders',
           string.format('%.0f', sale[2] - 1))
return 1

-- part order_of_request
-- The order of ARGV[1]'s request ARGV[2], with number ARGV[3], and what is counted for him.
-- KEYS[2] buyers hash   KEYS[3] requests hash
-- Reply: live, units, his latest order, the order, its letter, where it is if it is not the latest;
--        nothing: there is no such order
local function order_of_request()
  local record = redis.call('hget', KEYS[2], ARGV[1])
  local live, units, latest = string.match(record or '', '^(%d+) (%d+) (.+)$')
  if not live or math.max(#live, #units) > 15 then return end
  local place = #ARGV[1] .. ':' .. ARGV[1] .. ARGV[2]
  local order = latest
  if string.match(latest, '^%a %d+ %d+ %S+ %d+ %d+ (.+)$') ~= ARGV[2] then
    order = redis.call('hget', KEYS[3], place)
  end
  local state, number = string.match(order or '', '^(%a) %d+ %d+ (%S+) ')
  if number ~= ARGV[3] then return end
  return tonumber(live), tonumber(units), latest, order, state, place
end

-- part write_order
-- Write it back with another letter; it stands at `place` without its request, unless it is the
-- latest.   KEYS[2] buyers hash   KEYS[3] requests hash   ARGV[1] buyer
local function write_order(live, units, latest, order, letter, place)
  local changed = letter .. string.sub(order, 2)
  if order == latest then latest = changed else redis.call('hset', KEYS[3], place, changed) end
  redis.call('hset', KEYS[2], ARGV[1], string.format('%.0f %.0f ', live, units) .. latest)
end

-- script give_back
-- Return units of an order to the sale, once.
-- KEYS[1] sale hash   KEYS[2] buyers hash   KEYS[3] requests hash   KEYS[4] returned hash
-- ARGV[1] buyer   ARGV[2] request   ARGV[3] number of the order   ARGV[4] id:seq of the return
-- ARGV[5] units   ARGV[6] letter of the state in which the order ended; 'a': a part of it goes on
-- Reply: 1 now, 0 before, -1 the store has no such order, -2 the sale is archived,
--        -3 nobody may change the sale now
-- include sale/recovery.lua store
-- include sale/recovery.lua is_shut
-- include sale/records.lua order_of_request
-- include sale/records.lua write_order
local sale = redis.call('hmget', KEYS[1], 'capacity', 'sold', 'archived', 'given_back',
                        'recovering', 'store')
if sale[3] then return -2 end
if is_shut(sale[5], sale[6]) then return -3 end
if redis.call('hexists', KEYS[4], ARGV[4]) == 1 then return 0 end
local live, units, latest, order, state, place = order_of_request()
if not sale[1] or not live or state ~= 'a' then return -1 end

redis.call('hset', KEYS[4], ARGV[4], ARGV[5])
write_order(ARGV[6] == 'a' and live or live - 1, units - ARGV[5], latest, order, ARGV[6], place)
redis.call('hset', KEYS[1], 'sold', string.format('%.0f', sale[2] - ARGV[5]),
           'given_back', string.format('%.0f', (sale[4] or 0) + ARGV[5]))
return 1

-- script take_again
-- Take the units of an order that had ended once more, if they are left and its buyer may have
-- them. Whoever asks again is answered the same: the database may be hearing of the first answer.
-- KEYS and ARGV[1..4] as give_back   ARGV[5] units
-- Reply: 1 it has them, now or before; 0 refused, now or before; -1 the store has no such order;
--        -3 nobody may change the sale now
-- include sale/recovery.lua store
-- include sale/recovery.lua is_shut
-- include sale/records.lua order_of_request
-- include sale/records.lua write_order
local sale = redis.call('hmget', KEYS[1], 'capacity', 'sold', 'archived', 'given_back',
                        'recovering', 'store', 'limit', 'unit_limit')
if sale[3] then return 0 end
if is_shut(sale[5], sale[6]) then return -3 end
local answered = redis.call('hget', KEYS[4], ARGV[4])
if answered then return answered == '0' and 0 or 1 end
local live, units, latest, order, state, place = order_of_request()
if not sale[1] or not live or state == 'a' then return -1 end
local more, limit, unit_limit = tonumber(ARGV[5]), tonumber(sale[7]), tonumber(sale[8])
if more > sale[1] - sale[2] or (limit > 0 and live >= limit)
   or (unit_limit > 0 and units + more > unit_limit) then
  redis.call('hset', KEYS[4], ARGV[4], '0')
  return 0
end

redis.call('hset', KEYS[4], ARGV[4], '-' .. ARGV[5])
write_order(live + 1, units + more, latest, order, 'a', place)
redis.call('hset', KEYS[1], 'sold', string.format('%.0f', sale[2] + more),
           'given_back', string.format('%.0f', (sale[4] or 0) - more))
return 1

-- script change_stock
-- Change what there is to sell in all, once for each change; changes come one after another.
-- KEYS[1] sale hash   ARGV[1] which change of the sale: 1, 2, 3 ...   ARGV[2] units more, or fewer
-- Of a bucket `added` counts what changes have made of it, as its capacity changes otherwise, too.
-- Reply: 1 it is changed; 0 refused: more are sold, or the sale is archived; nil no such sale;
--        -1 the one before it is lost here; -2 the one after it is lost there; -3 nobody may
--        change the sale now
-- include sale/recovery.lua store
-- include sale/recovery.lua is_shut
local sale = redis.call('hmget', KEYS[1], 'capacity', 'sold', 'changes', 'refused', 'archived',
                        'recovering', 'store', 'bucket', 'moves', 'frozen', 'added')
if not sale[1] then return false end
local is_still = sale[8] and (not sale[9] or sale[10])
if (is_still or is_shut(sale[6], sale[7])) and not sale[5] then return -3 end
if tonumber(ARGV[1]) < tonumber(sale[3] or 0) then return -2 end
if ARGV[1] == sale[3] then return sale[4] == ARGV[1] and 0 or 1 end
if tonumber(ARGV[1]) > (sale[3] or 0) + 1 then return -1 end
local capacity = sale[1] + ARGV[2]
local refused = sale[5] or (ARGV[2] + 0 < 0 and capacity < tonumber(sale[2]))
if refused then
  redis.call('hset', KEYS[1], 'changes', ARGV[1], 'refused', ARGV[1])
  return 0
end
redis.call('hset', KEYS[1], 'changes', ARGV[1], 'capacity', string.format('%.0f', capacity))
if sale[8] then
  redis.call('hset', KEYS[1], 'added', string.format('%.0f', (sale[11] or 0) + ARGV[2]))
end
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
