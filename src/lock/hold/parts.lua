-- What many scripts of the locks include.

-- part server_time
-- The server's time in milliseconds, asked once.
local asked
local function server_time()
  if not asked then
    local time = redis.call('TIME')
    asked = time[1] * 1000 + math.floor(time[2] / 1000)
  end
  return asked
end

-- part next_token
-- The next `many` tokens of a fencing counter; the last of them. A counter that begins, or begins
-- again because the server has lost its data, begins at the server's time in microseconds: above
-- whatever it gave before. Doubles count exactly up to 2^53, the year 2255.
local function next_token(counter, many)
  local token = redis.call('INCRBY', counter, many)
  if token < 1e15 then
    local time = redis.call('TIME')
    token = time[1] * 1000000 + time[2] + many
    redis.call('SET', counter, string.format('%.0f', token))
  end
  return token
end
