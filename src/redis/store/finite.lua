-- Reads what a key holds. "inf" and "nan", which Lua takes for numbers, get the error of a key of another type.
local function finite(value)
  local number = tonumber(value)
  if number == nil or number ~= number or number == math.huge or number == -math.huge then
    error('WRONGTYPE no finite number: ' .. string.sub(tostring(value), 1, 40))
  end
  return number
end
