-- Decide requests to buy, one after another, all at one instant.
-- KEYS[1] sale hash   KEYS[2] buyers hash   KEYS[3] requests hash   KEYS[4] orders stream
-- ARGV[1] how many days follow   ARGV[2] where the last one ends, microseconds UTC
-- then two for each day: start, label; then three for each request: buyer, request, units
-- Reply: {'range', now_us}, nothing decided: the store's clock is outside these days
--        {letter or letter .. order, ...}, one for each request:
--        with the order:  A admitted   R the same request again   B bought already
--        without:         S sold out   E fewer units left than asked   F numbers of the day used up
--                         W not started   C closed   N no such sale
-- An order is 'n seconds sequence number units issued_us request'; seconds and sequence are the id.
-- The sequence of a sale with a lane is lane * 2^20 + a count within the second; that of a sale
-- made before there were lanes is a count within the day.
local id_epoch, id_day, id_most, id_lane = 1704067200, 86400, 4294967295, 1048576

local sale = redis.call('hmget', KEYS[1], 'stock', 'sold', 'limit', 'opens', 'closes', 'closed',
                        'type', 'digits', 'last', 'day', 'taken', 'second', 'sequence', 'orders',
                        'lane')
local days = tonumber(ARGV[1])
local first = 3 + 2 * days
local replies = {}
if not sale[1] then
  for at = first, #ARGV, 3 do replies[#replies + 1] = 'N' end
  return replies
end

local time = redis.call('time')
local now = math.max(time[1] * 1000000 + time[2], tonumber(sale[9] or 0))
if now < tonumber(ARGV[3]) or now >= tonumber(ARGV[2]) then
  return {'range', string.format('%.0f', now)}
end

local opens, closes = tonumber(sale[4]), tonumber(sale[5])
local shut
if sale[6] or (closes and now >= closes) then shut = 'C'
elseif opens and now < opens then shut = 'W' end

-- The label of today; never an earlier one than before, also if clients disagree on where days
-- begin.
local today = sale[10] or ''
for at = 3, first - 2, 2 do
  if now >= tonumber(ARGV[at]) and ARGV[at + 1] > today then today = ARGV[at + 1] end
end
local taken = today == sale[10] and tonumber(sale[11]) or 0
local most = 10 ^ tonumber(sale[8]) - 1

local second = math.floor(now / 1000000) - id_epoch
if second > 2147483647 then
  return redis.error_reply('ERR the 31 bits of seconds in ids ended in 2092')
end
local sequence, last_second = tonumber(sale[13] or 0), tonumber(sale[12] or -1)
if sale[15] then
  local lane = sale[15] * id_lane
  if second ~= last_second or sequence < lane then sequence = lane end
  id_most = lane + id_lane - 1
elseif math.floor(second / id_day) ~= math.floor(last_second / id_day) then
  sequence = 0
end

local stock, sold, limit = tonumber(sale[1]), tonumber(sale[2]), tonumber(sale[3])
local orders = tonumber(sale[14])
local shape = '%d %d %.0f ' .. sale[7] .. today .. '%0' .. sale[8] .. 'd %.0f '
              .. string.format('%.0f', now) .. ' '

local buyers, requests = {}, {}
for at = first, #ARGV, 3 do
  buyers[#buyers + 1] = ARGV[at]
  requests[#requests + 1] = #ARGV[at] .. ':' .. ARGV[at] .. ARGV[at + 1]
end
if #buyers == 0 then return replies end
local of_buyer = redis.call('hmget', KEYS[2], unpack(buyers))
local of_request = redis.call('hmget', KEYS[3], unpack(requests))
local now_of_buyer, now_of_request = {}, {}  -- decided in this very call
local new_buyers, new_requests = {}, {}

for i, buyer in ipairs(buyers) do
  local at = first + 3 * (i - 1)
  local units = tonumber(ARGV[at + 2])
  local same = now_of_request[requests[i]] or of_request[i]
  local latest = now_of_buyer[buyer] or of_buyer[i]
  local n = latest and tonumber(string.match(latest, '^%d+')) or 0
  if same then
    replies[i] = 'R' .. same
  elseif shut then
    replies[i] = shut
  elseif limit > 0 and n >= limit then
    replies[i] = 'B' .. latest
  elseif sold >= stock then
    replies[i] = 'S'
  elseif units > stock - sold then
    replies[i] = 'E'
  elseif taken >= most or sequence >= id_most then
    replies[i] = 'F'
  else
    sold, taken, sequence, orders = sold + units, taken + 1, sequence + 1, orders + 1
    local order = string.format(shape, n + 1, second, sequence, taken, units) .. ARGV[at + 1]
    redis.call('xadd', KEYS[4], '*', 'order', order, 'buyer', buyer)
    now_of_buyer[buyer], now_of_request[requests[i]] = order, order
    new_buyers[#new_buyers + 1], new_buyers[#new_buyers + 2] = buyer, order
    new_requests[#new_requests + 1], new_requests[#new_requests + 2] = requests[i], order
    replies[i] = 'A' .. order
  end
end

if #new_buyers > 0 then
  redis.call('hset', KEYS[2], unpack(new_buyers))
  redis.call('hset', KEYS[3], unpack(new_requests))
  redis.call('hset', KEYS[1], 'sold', string.format('%.0f', sold), 'orders', orders,
             'last', string.format('%.0f', now), 'day', today, 'taken', taken,
             'second', second, 'sequence', string.format('%.0f', sequence))
end
return replies
