/**
 * Leaking buckets of all replicas on the store's clock: replicas buy from them, now or ahead, and give back.
 *
 *     taken ──────────────────────────►     the level is what was taken and has not leaked yet;
 *     leaked ────────►                       what was taken first leaks first
 *
 *     KEYS  one for each bucket, all in one slot, each a hash: e (when it was made), t (taken), l (leaked), a (when it leaked last, µs)
 *     ARGV  for each key: rate per µs, burst, charge (below 0: what is given back), least level, least to buy, most to buy, number of batches that are given back;
 *           then for each of these batches: e, its end, its amount
 *     reply for each key: e, the end of what was sold, what was sold, the level
 *
 * Invariant: over any span of time what is sold and not given back is at most burst + rate · span. All buckets sell, or
 * none: a bucket that has less than the least sells nothing. A batch gives back at most the part that has not leaked,
 * because the rest has made room for others already. A batch of a bucket that is gone gives back nothing. A bucket is
 * kept until all of it has leaked, because a new bucket tells replicas that the store has lost theirs.
 */
import { GcraWindow } from '../../base/gcra-window.js';
import { rounding } from '../../base/quota-window.js';
import { localTables } from '../store/local-table.js';
import { finiteText } from '../store/script.js';
import type { StoreScript } from '../store/store.js';

export const bucketScript: StoreScript = {
  name: 'buckets',
  local: bucketInMemory,
  text: `
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local function text(number) return string.format('%.17g', number) end
${finiteText}local function held(value) return value and finite(value) end
local buckets, at, isSold = {}, 1, true
for i, key in ipairs(KEYS) do
  local rate, burst, charge, floor = tonumber(ARGV[at]), tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  local least, most, last = tonumber(ARGV[at + 4]), tonumber(ARGV[at + 5]), at + 6 + 3 * tonumber(ARGV[at + 6])
  local bucket = redis.call('HMGET', key, 'e', 't', 'l', 'a')
  local epoch, taken, leaked, leakedAt = bucket[1], held(bucket[2]), held(bucket[3]), held(bucket[4])
  if not (epoch and taken and leaked and leakedAt) then
    epoch, taken, leaked, leakedAt = string.format('%.0f', now), 0, 0, now
  end
  if now > leakedAt then leaked = math.min(taken, leaked + (now - leakedAt) * rate) end
  for batch = at + 7, last, 3 do
    if ARGV[batch] == epoch then
      local left = math.min(tonumber(ARGV[batch + 2]), tonumber(ARGV[batch + 1]) - leaked)
      if left > 0 then leaked = math.min(taken, leaked + left) end
    end
  end
  if charge > 0 then taken = taken + charge else leaked = math.min(taken, leaked - charge) end
  if taken - leaked < floor then taken = leaked + floor end
  local sold = math.min(most, math.max(0, burst - (taken - leaked)))
  if sold < least - burst * 1e-9 then isSold = false end
  buckets[i] = { epoch = epoch, taken = taken, leaked = leaked, sold = math.max(sold, least), rate = rate, burst = burst }
  at = last + 1
end
local reply = {}
for i, key in ipairs(KEYS) do
  local bucket = buckets[i]
  local sold = isSold and bucket.sold or 0
  local taken = bucket.taken + sold
  local level = taken - bucket.leaked
  if taken > 0 then
    redis.call('HSET', key, 'e', bucket.epoch, 't', text(taken), 'l', text(bucket.leaked), 'a', string.format('%.0f', now))
    redis.call('PEXPIRE', key, string.format('%.0f', math.min(math.ceil((level + bucket.burst) / bucket.rate / 1000) + 1, 31536000000)))
  end
  for _, part in ipairs({ bucket.epoch, text(taken), text(sold), text(level) }) do reply[#reply + 1] = part end
end
return reply
`,
};

const tables = localTables<{ readonly epoch: string; readonly window: GcraWindow }>();
const longestUs = 31_536_000_000_000;

/** The script's form for the memory of a process: a window of this process for each bucket. */
function bucketInMemory(memory: object, keys: readonly string[], args: readonly string[], nowUs: number): string[] {
  const table = tables(memory);
  let at = 0;
  const next = (): number => Number(args[at++]);
  const visited = keys.map((key) => {
    const [rate, burst, charge, floor, least, most] = [next(), next(), next(), next(), next(), next()];
    const { epoch, window } = table.get(key, nowUs) ?? {
      epoch: String(nowUs),
      window: new GcraWindow(rate, 1, burst),
    };
    window.limit = rate;
    for (let returns = next(); returns > 0; returns--) {
      const isOfThis = args[at++] === epoch;
      const [end, amount] = [next(), next()];
      if (isOfThis) window.giveBack(amount, nowUs, end);
    }
    if (charge > 0) window.take(charge, nowUs);
    else window.giveBack(-charge, nowUs);
    window.take(Math.max(0, floor - window.used(nowUs)), nowUs);
    const sold = Math.min(most, Math.max(0, burst - window.used(nowUs)));
    return { key, epoch, window, rate, burst, sold: Math.max(sold, least), hasLeast: sold >= least - burst * rounding };
  });
  const isSold = visited.every(({ hasLeast }) => hasLeast);
  return visited.flatMap(({ key, epoch, window, rate, burst, sold: ready }) => {
    const sold = isSold ? ready : 0;
    const { end } = window.take(sold, nowUs);
    const level = window.used(nowUs);
    if (end > 0) table.set(key, { epoch, window }, nowUs + Math.min((level + burst) / rate + 1_000, longestUs), nowUs);
    return [epoch, ...[end, sold, level].map(String)];
  });
}
