/**
 * Leaking buckets of all replicas on the store's clock: replicas buy from them, now or ahead, and give back.
 *
 *     taken ──────────────────────────►     the level is what was taken and has not leaked yet;
 *     leaked ────────►                       what was taken first leaks first
 *
 *     KEYS  one for each bucket, all in one slot, each a hash: e (when it was made), t (taken), l (leaked), a (when it leaked last, µs);
 *           the first also m (marks of the last calls)
 *     ARGV  the mark of the call, or nothing: + and a name for a taking, - and the name for its end;
 *           for each key: rate per µs, burst, charge, least level, least to buy, most to buy, what is given back if the taking of this name was granted,
 *           number of batches that are given back; then for each of these batches: e, its end, its amount
 *     reply for each key: e, the end of what was sold, what was sold, the level
 *
 * Invariant: over any span of time what is sold and not given back is at most burst + rate · span. All buckets sell, or
 * none: a bucket that has less than the least sells nothing. A batch gives back at most the part that has not leaked,
 * because the rest has made room for others already. A batch of a bucket that is gone gives back nothing. A bucket is
 * kept until all of it has leaked, because a new bucket tells replicas that the store has lost theirs. A call with a
 * mark counts once, however often it comes, and a taking that comes after its end is not granted.
 */
import { GcraWindow } from '../../base/gcra-window.js';
import { rounding } from '../../base/quota-window.js';
import { builtScripts } from '../store/built-scripts.js';
import { localTables } from '../store/local-table.js';
import type { StoreScript } from '../store/store.js';

/** The characters of the marks that a bucket keeps, which are some 250 calls. */
const mostMarks = 4_096;

export const bucketScript: StoreScript = {
  name: 'buckets',
  local: bucketInMemory,
  text: builtScripts.buckets.replace('MOST_MARKS', String(mostMarks)),
};

type Entry = Readonly<{ epoch: string; window: GcraWindow; marks: string }>;

const tables = localTables<Entry>();
const longestUs = 31_536_000_000_000;

/** The script's form for the memory of a process: a window of this process for each bucket. */
function bucketInMemory(memory: object, keys: readonly string[], args: readonly string[], nowUs: number): string[] {
  const table = tables(memory);
  const mark = args[0] as string;
  const marks = table.get(keys[0] as string, nowUs)?.marks ?? '';
  const isEnd = mark.startsWith('-');
  const [taking, end] = ['+', '-'].map((sign) => `${sign}${mark.slice(1)};`) as [string, string];
  const isTaken = mark !== '' && marks.includes(taking);
  const isKnown = mark !== '' && (marks.includes(end) || (isTaken && !isEnd));
  let at = 1;
  const next = (): number => Number(args[at++]);
  const visited = keys.map((key) => {
    const [rate, burst, charge, floor, least, most, undo] = [next(), next(), next(), next(), next(), next(), next()];
    const { epoch, window } = table.get(key, nowUs) ?? { epoch: String(nowUs), window: new GcraWindow(rate, 1, burst) };
    window.limit = rate;
    for (let returns = next(); returns > 0; returns--) {
      const isOfThis = args[at++] === epoch;
      const [end, amount] = [next(), next()];
      if (isOfThis && !isKnown) window.giveBack(amount, nowUs, end);
    }
    if (!isKnown) {
      if (isTaken) window.giveBack(undo, nowUs);
      window.take(charge, nowUs);
      window.take(Math.max(0, floor - window.used(nowUs)), nowUs);
    }
    const sold = isKnown ? 0 : Math.min(most, Math.max(0, burst - window.used(nowUs)));
    return { key, epoch, window, rate, burst, sold: Math.max(sold, least), hasLeast: sold >= least - burst * rounding };
  });
  const isSold = visited.every(({ hasLeast }) => hasLeast);
  const isNoted = mark !== '' && !isKnown && (isSold || isEnd);
  const noted = isNoted ? `${marks.replace(taking, '')}${mark};`.slice(-mostMarks) : marks;
  return visited.flatMap(({ key, epoch, window, rate, burst, sold: ready }) => {
    const sold = isSold ? ready : 0;
    const { end } = window.take(sold, nowUs);
    const level = window.used(nowUs);
    const untilUs = nowUs + Math.min((level + burst) / rate + 1_000, longestUs);
    if (end > 0 || isEnd) table.set(key, { epoch, window, marks: noted }, untilUs, nowUs);
    return [epoch, ...[end, isKnown && isTaken && !isEnd ? ready : sold, level].map(String)];
  });
}
