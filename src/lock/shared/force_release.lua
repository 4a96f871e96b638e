-- End all holds there are, without asking their owners, and hand the lock over.
-- KEYS, ARGV: see lock/shared/settle
-- Reply: 1 ended; 0 nobody was in.
-- include lock/shared/holds.lua
-- include lock/hold/next_token.lua
-- include lock/wait/server_time.lua
-- include lock/shared/settle.lua
local mode = call('HGET', KEYS[1], 'mode')
if not mode then
  return 0
end
local fields = call('HGETALL', KEYS[1])
for i = 1, #fields, 2 do
  for n = 1, tonumber(fields[i + 1]) or 0 do
    call('DEL', hold_key(ARGV[1], fields[i], n))
  end
end
call('DEL', KEYS[1])
pass_on(mode == 'read' and 0 or 1, 0, 0)
return 1
