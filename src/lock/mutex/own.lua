-- Says who is in, since a process may pass its hold to another of its owners without asking.
local function own(key, owner, entries, holder, held_for)
  local call = redis.call
  if call('HEXISTS', key, owner) == 0 then
    for _, field in ipairs(call('HKEYS', key)) do
      if string.sub(field, 1, 7) ~= 'sluice:' then
        call('HDEL', key, field)
      end
    end
    call('HDEL', key, 'sluice:since')
  end
  call('HSET', key, owner, entries, 'sluice:holder', holder)
  if call('HEXISTS', key, 'sluice:since') == 0 then
    call('HSET', key, 'sluice:since', string.format('%.0f', server_time() - held_for))
  end
end
