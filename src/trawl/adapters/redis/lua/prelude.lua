-- What all scripts share. Times are milliseconds, keys of records are eight bytes, big endian.

local function number(text, otherwise)
  if text then return tonumber(text) end
  return otherwise
end

