-- part number
-- What a text counts, where INCRBY counts it as exactly as doubles do; else nil.
local function number_in(text)
  local number = string.match(text or '', '^%-?%d+$') and tonumber(text)
  local is_exact = number and math.abs(number) <= 9007199254740992
  return is_exact and string.format('%d', number) == text and number or nil
end
