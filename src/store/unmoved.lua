-- The beginning of each script in its edition for a cluster, unless it "goes on while its slot
-- moves". While the slot of its keys is under way to another node, a command on a key that is not
-- here, and be it one that the script has deleted itself, raises an error after what was written
-- before; and what a script makes at the node to which the slot goes may still be at the other. So
-- such a script would be half done: it does nothing, and is asked again, in the words of a server
-- that has some of its keys alone. Of the two keys here one is nowhere: both nodes refuse them.
if KEYS[1] then
  local tag = string.find(KEYS[1], '{', 1, true) and KEYS[1] or '{' .. KEYS[1] .. '}'
  local here = redis.pcall('EXISTS', KEYS[1], tag .. ':sluice:moved')
  if type(here) == 'table' then
    if string.find(here.err, 'The user executing', 1, true) then
      return redis.error_reply('NOPERM EXISTS of the key: ' .. here.err .. '; nothing was written')
    end
    return redis.error_reply('TRYAGAIN Multiple keys request during rehashing of slot')
  end
end
