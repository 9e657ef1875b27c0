/**
 * One quota of all replicas on the store's clock: the level of a leaking bucket, from which replicas buy ahead and to
 * which they give back.
 *
 *     taken ──────────────────────────►     the level is what was taken and has not leaked yet;
 *     leaked ────────►                       what was taken first leaks first
 *
 *     KEYS  one, a hash: e (when it was made), t (taken), l (leaked), a (when it leaked last, µs)
 *     ARGV  rate per µs, burst, charge, least level, least to buy, most to buy; then for each batch that is given back: e, its end, its amount
 *     reply e, the end of what was sold, what was sold, the level
 *
 * Invariant: over any span of time what is sold and not given back is at most burst + rate · span. A batch gives back
 * at most the part that has not leaked, because the rest has made room for others already. A batch of a bucket that is
 * gone gives back nothing. A bucket is kept until all of it has leaked, because a new bucket tells replicas that the
 * store has lost theirs.
 */
import { finiteText } from '../store/script.js';

export const quotaScript: string = `
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local function text(number) return string.format('%.17g', number) end
${finiteText}local function held(value) return value and finite(value) end
local key = KEYS[1]
local rate, burst, charge, floor = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local least, most = tonumber(ARGV[5]), tonumber(ARGV[6])
local bucket = redis.call('HMGET', key, 'e', 't', 'l', 'a')
local epoch, taken, leaked, at = bucket[1], held(bucket[2]), held(bucket[3]), held(bucket[4])
if not (epoch and taken and leaked and at) then
  epoch, taken, leaked, at = string.format('%.0f', now), 0, 0, now
end
if now > at then leaked = math.min(taken, leaked + (now - at) * rate) end
for i = 7, #ARGV - 2, 3 do
  if ARGV[i] == epoch then
    local left = math.min(tonumber(ARGV[i + 2]), tonumber(ARGV[i + 1]) - leaked)
    if left > 0 then leaked = math.min(taken, leaked + left) end
  end
end
taken = taken + charge
if taken - leaked < floor then taken = leaked + floor end
local sold = math.min(most, math.max(0, burst - (taken - leaked)))
if sold < least - burst * 1e-9 then sold = 0 end
if sold > 0 and sold < least then sold = least end
taken = taken + sold
local level = taken - leaked
redis.call('HSET', key, 'e', epoch, 't', text(taken), 'l', text(leaked), 'a', string.format('%.0f', now))
redis.call('PEXPIRE', key, string.format('%.0f', math.min(math.ceil((level + burst) / rate / 1000) + 1, 31536000000)))
return { epoch, text(taken), text(sold), text(level) }
`;
