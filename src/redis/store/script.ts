/** What scripts begin with. A script is its text, in Lua. */

/** Reads what a key holds. "inf" and "nan", which Lua takes for numbers, get the error of a key of another type. */
export const finiteText: string = `
local function finite(value)
  local number = tonumber(value)
  if number == nil or number ~= number or number == math.huge or number == -math.huge then
    error('WRONGTYPE no finite number: ' .. string.sub(tostring(value), 1, 40))
  end
  return number
end
`;

/** Opens most scripts: the clock in ms; integers as text, because the store cuts fractions, and digits after 14. */
export const scriptHead: string = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function text(number) return string.format('%.0f', number) end
${finiteText}`;
