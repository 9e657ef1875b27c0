/** The buckets' script in the form for the memory of a process: a window of this process for each bucket. */
import { GcraWindow } from '../../base/gcra-window.js';
import { rounding } from '../../base/quota-window.js';
import { localTables } from '../store/local-table.js';

const tables = localTables<{ readonly epoch: string; readonly window: GcraWindow }>();
const longestUs = 31_536_000_000_000;

export function bucketInMemory(
  memory: object,
  keys: readonly string[],
  args: readonly string[],
  nowUs: number,
): string[] {
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
