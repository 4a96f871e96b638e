-- Whoever was told to look at a lock has looked now, and is to be told of the next hand-over again.
local function has_looked(lock, request)
  local looks = redis.call('HGET', lock, 'sluice:looks')
  if looks and string.match(looks, '^%S+') == request then
    redis.call('HDEL', lock, 'sluice:looks')
  end
end
