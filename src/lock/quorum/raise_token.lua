-- Lifts a fencing counter to `token`, decimal; Lua counts exactly up to 2^53.
local function raise_token(counter, token)
  if tonumber(redis.call('GET', counter) or 0) < tonumber(token) then
    redis.call('SET', counter, token)
  end
end
