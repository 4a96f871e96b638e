-- The server's time in milliseconds, asked once.
local asked
local function server_time()
  if not asked then
    local time = redis.call('TIME')
    asked = time[1] * 1000 + math.floor(time[2] / 1000)
  end
  return asked
end
