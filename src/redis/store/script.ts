/** What scripts begin with. A script is its text, in Lua. */

/**
 * Reads what a key holds. Lua takes "inf" and "nan" for numbers, with which nothing can be reckoned. The error is that
 * of a key of another type.
 */
export const finiteText: string = `
local function finite(value)
  local number = tonumber(value)
  if number == nil or number ~= number or number == math.huge or number == -math.huge then
    error('WRONGTYPE no finite number: ' .. string.sub(tostring(value), 1, 40))
  end
  return number
end
`;

/**
 * Opens most scripts: the store's clock in ms, and integers as text, because the store prints Lua's numbers with 14
 * digits and cuts fractions off those it returns.
 */
export const scriptHead: string = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function text(number) return string.format('%.0f', number) end
${finiteText}`;
