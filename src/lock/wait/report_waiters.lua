-- Say who waits for a lock, for people: whoever is not in its queue, or is there by another's name.
-- KEYS[1] hash: request -> "seen since inbox owner holder", times in ms of the server's clock
-- ARGV[1] inbox of the process
-- ARGV, three for each that waits: request id, for how long in ms, "owner holder"
-- Reply: how many wait so.
-- include lock/hold/parts.lua server_time
local call = redis.call
local counts_for = 60000
local most = 1000
local now = server_time()
local fields = call('HGETALL', KEYS[1])
for i = 1, #fields, 2 do
  local seen = tonumber(string.match(fields[i + 1], '^%d+'))
  if not seen or seen < now - counts_for then  -- its process is dead
    call('HDEL', KEYS[1], fields[i])
  end
end
for i = 2, #ARGV, 3 do
  if call('HLEN', KEYS[1]) < most or call('HEXISTS', KEYS[1], ARGV[i]) == 1 then
    call('HSET', KEYS[1], ARGV[i],
         string.format('%.0f %.0f %s ', now, now - ARGV[i + 1], ARGV[1]) .. ARGV[i + 2])
  end
end
call('PEXPIRE', KEYS[1], counts_for)
return call('HLEN', KEYS[1])
