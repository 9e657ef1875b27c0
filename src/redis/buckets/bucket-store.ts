/** The calls of the buckets' script, what is wrong with an answer, and what users of buckets are told of the store. */
import { GuardedEvents, type ListenerErrors } from '../../base/faults/guarded-events.js';
import type { LinkFigures, Store, Texts } from '../store/store.js';
import { numbersOf, StoreLink } from '../store/store-link.js';
import type { StoreProblem } from '../store/store-problem.js';
import type { BucketSettings } from './bucket-options.js';
import { bucketScript } from './bucket-script.js';

/** The bucket that all replicas share: so many units in so many ms, and so many at once. */
export type BucketTerms = Readonly<Record<'limit' | 'perMs' | 'burst', number>>;

/** A part of what a bucket sold: its epoch, and the end of what was sold on the scale of all that it ever sold. */
export type SoldPart = Readonly<{ epoch: string; end: string; amount: number }>;

export interface Purchase {
  /** Units per µs. */
  readonly rate: number;
  readonly burst: number;
  /** Units that were taken without asking. */
  readonly charge: number;
  readonly leastLevel: number;
  /** Less than this is not bought, from any bucket of the call. */
  readonly least: number;
  readonly most: number;
  /** What is given back if the taking was granted whose end the call is. */
  readonly undo: number;
  readonly back: readonly SoldPart[];
}

/** What remains as it is when nothing but `wanted` is asked for. */
export function purchaseOf({ limit, perMs, burst }: BucketTerms, wanted: Partial<Purchase>): Purchase {
  return { rate: limit / (perMs * 1_000), burst, ...nothing, ...wanted };
}

const nothing = { charge: 0, leastLevel: 0, least: 0, most: 0, undo: 0, back: [] };

export type Sale = Readonly<{ epoch: string; end: string; sold: number; level: number }>;

const partsOfSale = 4;

type Call = { readonly mark?: string; readonly onLate?: (sales: readonly Sale[]) => void };

type BucketEvents = ListenerErrors & { problem: StoreProblem };

export class BucketStore {
  private readonly link: StoreLink;
  private readonly events = new GuardedEvents<BucketEvents>('problem');

  /** `where` opens messages; `longestRetryMs` as of the link. */
  constructor(store: Store, settings: BucketSettings, where: string, longestRetryMs?: number) {
    const problem = (told: StoreProblem): void => this.events.emit('problem', told);
    this.link = new StoreLink(store, settings, where, { problem }, longestRetryMs);
  }

  get store(): LinkFigures {
    return this.link.figures;
  }

  /** One purchase for each key, in one step; a `mark` counts once. @throws (rejects) StoreError */
  buy(keys: Texts, purchases: readonly Purchase[], { mark = '', onLate }: Call = {}): Promise<readonly Sale[]> {
    const args = [mark, ...purchases.flatMap(argumentsOf)];
    return this.link.ask(bucketScript, keys, args, (reply) => salesOf(reply, purchases), onLate);
  }

  async buyOne(key: string, purchase: Purchase, onLate: (sale: Sale) => void): Promise<Sale> {
    const [sale] = await this.buy([key], [purchase], { onLate: (late) => late.forEach(onLate) });
    return sale as Sale;
  }

  onProblem(listener: (problem: StoreProblem) => void): () => void {
    return this.events.on('problem', listener);
  }

  close(): void {
    this.link.close();
  }
}

function argumentsOf({ rate, burst, charge, leastLevel, least, most, undo, back }: Purchase): string[] {
  const batches = back.flatMap(({ epoch, end, amount }) => [epoch, end, String(amount)]);
  return [...[rate, burst, charge, leastLevel, least, most, undo, back.length].map(String), ...batches];
}

/** Undefined for no answer of the script: more than was asked for, some sold and others not, over 2^53 µs to leak. */
function salesOf(reply: unknown, purchases: readonly Purchase[]): Sale[] | undefined {
  const numbers = numbersOf(reply, purchases.length * partsOfSale);
  if (numbers === undefined || !Array.isArray(reply)) return undefined;
  const sales = purchases.map((_, index): Sale => {
    const [, , sold = 0, level = 0] = numbers.slice(index * partsOfSale);
    return { epoch: String(reply[index * partsOfSale]), end: String(reply[index * partsOfSale + 1]), sold, level };
  });
  const isOne = sales.every(({ end, sold, level }, index) => {
    const { rate, most } = purchases[index] as Purchase;
    return 0 <= sold && sold <= Math.min(most, Number(end)) && 0 <= level && level <= rate * Number.MAX_SAFE_INTEGER;
  });
  return isOne && (isSold(sales, purchases) || sales.every(({ sold }) => sold === 0)) ? sales : undefined;
}

export const isSold = (sales: readonly Sale[], purchases: readonly Pick<Purchase, 'least'>[]): boolean =>
  sales.every(({ sold }, index) => sold >= (purchases[index]?.least ?? 0));
