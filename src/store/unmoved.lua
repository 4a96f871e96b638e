-- The beginning of each script in its edition for a cluster. While the slot of its keys is under
-- way to another node, a command on a key that is not here, and be it one that the script has
-- deleted itself, raises an error after what was written before. Such a script would be half done:
-- it does nothing, and is asked again, in the words of a server that has some of its keys alone.
if KEYS[1] then
  local tag = string.find(KEYS[1], '{', 1, true) and KEYS[1] or '{' .. KEYS[1] .. '}'
  local here = redis.pcall('EXISTS', tag .. ':sluice:moved')
  if type(here) == 'table' then
    return redis.error_reply('TRYAGAIN Multiple keys request during rehashing of slot')
  end
end
