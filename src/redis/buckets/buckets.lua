-- The script's form for a server: see bucket-script.ts.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local function text(number) return string.format('%.17g', number) end
local function held(value) return value and finite(value) end
local mark, name, marks = ARGV[1], string.sub(ARGV[1], 2), ''
if mark ~= '' then marks = redis.call('HGET', KEYS[1], 'm') or '' end
local function find(sign) return string.find(marks, sign .. name .. ';', 1, true) end
local takenFrom, takenTo = find('+')
local isEnd = mark == '-' .. name
local isKnown = mark ~= '' and (find('-') or (takenFrom and not isEnd))
local buckets, at, isSold = {}, 2, true
for i, key in ipairs(KEYS) do
  local rate, burst, charge, floor = tonumber(ARGV[at]), tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  local least, most, last = tonumber(ARGV[at + 4]), tonumber(ARGV[at + 5]), at + 7 + 3 * tonumber(ARGV[at + 7])
  local bucket = redis.call('HMGET', key, 'e', 't', 'l', 'a')
  local epoch, taken, leaked, leakedAt = bucket[1], held(bucket[2]), held(bucket[3]), held(bucket[4])
  if not (epoch and taken and leaked and leakedAt) then
    epoch, taken, leaked, leakedAt = string.format('%.0f', now), 0, 0, now
  end
  if now > leakedAt then leaked = math.min(taken, leaked + (now - leakedAt) * rate) end
  local function giveBack(amount) leaked = math.min(taken, leaked + math.max(0, amount)) end
  if isKnown then
    most = 0
  else
    for batch = at + 8, last, 3 do
      if ARGV[batch] == epoch then giveBack(math.min(tonumber(ARGV[batch + 2]), tonumber(ARGV[batch + 1]) - leaked)) end
    end
    if takenFrom then giveBack(tonumber(ARGV[at + 6])) end
    taken = taken + charge
    if taken - leaked < floor then taken = leaked + floor end
  end
  local sold = math.min(most, math.max(0, burst - (taken - leaked)))
  if sold < least - burst * 1e-9 then isSold = false end
  buckets[i] = { epoch = epoch, taken = taken, leaked = leaked, sold = math.max(sold, least), rate = rate, burst = burst }
  at = last + 1
end
if mark ~= '' and not isKnown and (isSold or isEnd) then
  if takenFrom then marks = string.sub(marks, 1, takenFrom - 1) .. string.sub(marks, takenTo + 1) end
  marks = string.sub(marks .. mark .. ';', -MOST_MARKS)
end
local isRepeated = isKnown and takenFrom and not isEnd
local reply = {}
for i, key in ipairs(KEYS) do
  local bucket = buckets[i]
  local sold = isSold and bucket.sold or 0
  local taken = bucket.taken + sold
  local level = taken - bucket.leaked
  if taken > 0 or isEnd then
    redis.call('HSET', key, 'e', bucket.epoch, 't', text(taken), 'l', text(bucket.leaked), 'a', string.format('%.0f', now))
    if i == 1 and marks ~= '' then redis.call('HSET', key, 'm', marks) end
    redis.call('PEXPIRE', key, string.format('%.0f', math.min(math.ceil((level + bucket.burst) / bucket.rate / 1000) + 1, 31536000000)))
  end
  for _, part in ipairs({ bucket.epoch, text(taken), text(isRepeated and bucket.sold or sold), text(level) }) do reply[#reply + 1] = part end
end
return reply
