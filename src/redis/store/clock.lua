-- The clock in ms; integers as text, because the store cuts fractions, and digits after 14.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function text(number) return string.format('%.0f', number) end
