-- What many scripts of the locks include.

-- part server_time
-- The server's time in milliseconds, asked once.
local asked, asked_us
local function server_time()
  if not asked then
    local time = redis.call('TIME')
    asked_us = time[1] * 1000000 + time[2]
    asked = math.floor(asked_us / 1000)
  end
  return asked
end

-- part next_token
-- The next `many` tokens of a fencing counter; the last of them. None is below the server's time in
-- microseconds: so tokens rise although the server has lost some of its data, or all, and a counter
-- may end. Doubles count exactly up to 2^53, the year 2255. Give them to redis.call as numbers:
-- that is exact, and costs less than string.format; in texts, by '%.0f'. Redis writes a number anew
-- for each call: a constant is cheaper as a text.
-- A counter that is no number, or above 2^53, raises an error and stays as it is.
-- REQUIRES: part server_time
local counter_kept = '90000000'  -- ms: longer than any lease
local function next_token(counter, many)
  server_time()
  local token = asked_us + many
  local counted = redis.call('SET', counter, token, 'PX', counter_kept, 'GET')
  local last = tonumber(counted or 0)
  if not last or last + many > token then
    if not last or last > 9007199254740992 - many then
      redis.call('SET', counter, counted)
      redis.call('INCRBY', counter, '9223372036854775807')  -- says what is wrong
    end
    token = last + many
    redis.call('SET', counter, token, 'PX', counter_kept)
  end
  return token
end

-- part once
-- What copies of one question must not do again: the answer to the first is kept for a minute under
-- the last key, and is the answer to all.
local function answered()
  return tonumber(redis.call('GET', KEYS[#KEYS]) or nil)
end

-- A server that has no memory for the answer may do it again.
local function answer_once(answer)
  redis.pcall('SET', KEYS[#KEYS], answer, 'PX', 60000)
  return answer
end

-- part denied
-- Why a script refuses a key at which it has looked by `verb`: `text`, unless the answer was that
-- the user may not look.
local function denied(answer, verb, text)
  local why = type(answer) == 'table' and answer.err or 'WRONGTYPE'
  return string.find(why, 'WRONGTYPE', 1, true) and text
    or 'NOPERM ' .. verb .. ' of the key: ' .. why .. '; nothing was written'
end

-- part is_lock
local no_lock = 'WRONGTYPE the key of this name is not a lock; nothing was written'
-- Whether a hash is a lock: one of ours, or one of Redisson, which has the fields "mode" (of a
-- read-write lock) and <uuid>:<number>, <uuid>:<number>:write or, in its transactions,
-- <uuid>:<number>:<hex>, with a count; the number is any long that a Java program chose. Nothing
-- else may be taken for a lock, or be deleted as one. A caller that deletes nothing may say how
-- many fields are `most`: of a larger hash, which then has many readers, "mode" alone is read.
local function is_lock(key, most)
  local is_ours = redis.pcall('HEXISTS', key, 'sluice:request')
  if is_ours ~= 0 then
    no_lock = denied(is_ours, 'HEXISTS', no_lock)
    return is_ours == 1  -- else it is no hash
  end
  if most and redis.call('HLEN', key) > most then
    return redis.call('HGET', key, 'mode') == 'read'
  end
  local known = false
  local fields = redis.call('HGETALL', key)
  for i = 1, #fields, 2 do
    local field, value = fields[i], fields[i + 1]
    local uuid = string.match(field, '^([%x-]+):%-?%d+$')
      or string.match(field, '^([%x-]+):%-?%d+:write$')
      or string.match(field, '^([%x-]+):%-?%d+:%x+$')
    if field == 'mode' and (value == 'read' or value == 'write')
      or uuid and #uuid == 36 and string.match(value, '^%d+$') then
      known = true
    elseif string.sub(field, 1, 7) ~= 'sluice:' then
      return false
    end
  end
  return known
end
