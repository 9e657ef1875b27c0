/**
 * Budgets that all replicas share, exactly: a round trip a request. Invariant: the limits hold over all replicas; a
 * ticket, known by name, is settled once: if its answer is lost, its end gives the grant back, or prevents it.
 */
import { letProcessEnd } from '../../base/clock.js';
import { putLatest } from '../../base/put.js';
import * as s from '../../base/schema/schema.js';
import type { Dispatched, Drop, FlowGate, FlowKey, FlowRequest, Lease, Outcome, Usage } from '../../index.js';
import type { AdmissionKey } from '../../types/index.js';
import { fallbackPart } from '../buckets/bucket-options.js';
import { BucketStore, isSold, type Purchase, purchaseOf, type Sale } from '../buckets/bucket-store.js';
import { FallbackShare } from '../buckets/fallback-share.js';
import { bucketKey } from '../store/keys.js';
import { type RedisClient, storeSchema } from '../store/redis-store.js';
import type { LinkFigures, Store } from '../store/store.js';
import { newReplicaId } from '../store/store-options.js';
import { StoreError, type StoreProblem } from '../store/store-problem.js';
import { type BudgetSettings, budgetSettings, costsOf, type SharedBudgetsOptions } from './budget-options.js';

/** A request may not be paid for now. */
export interface BudgetRefusal {
  readonly isTaken: false;
  readonly reason: string;
  /** Undefined: never, because it costs more than a burst. */
  readonly retryAfterMs: number | undefined;
}

/** A request has been paid for by its estimate. */
export interface BudgetTicket {
  readonly isTaken: true;
  /** True when it was taken from this replica's fallback share, because the store is away. */
  readonly isLocal: boolean;
  /** Charges or refunds the difference to what was used. Once; never rejects. */
  settle(usage: Usage | undefined): Promise<void>;
  /** Gives everything back, because the request never ran. Once; never rejects. */
  refund(): Promise<void>;
}

/** The rest of each budget, by its name. */
export type BudgetBalance = Readonly<Record<string, number>>;

/** The part of a controller that `guard` needs. */
export interface GuardedFlow<R extends FlowRequest> extends FlowGate<R> {
  on(event: 'released', listener: (event: { readonly lease: Lease; readonly usage: Usage }) => unknown): () => void;
}

export interface SharedBudgets<R = unknown> {
  /** Takes a request's estimate from all budgets or none, within one round trip or `callTimeout`. Never rejects. */
  take(request: R, key: AdmissionKey): Promise<BudgetTicket | BudgetRefusal>;
  /** The rest of the budgets of a payer; undefined while the store is away. */
  peek(payer: string): Promise<BudgetBalance | undefined>;
  /** The gate behind the budgets: refused requests are `RejectedCapacity`, the others settle at release. */
  guard<Q extends R & FlowRequest>(flow: GuardedFlow<Q>): FlowGate<Q>;
  readonly store: LinkFigures;
  /** Calls `listener` for each kind of problem; returns a function that stops this. */
  onProblem(listener: (problem: StoreProblem) => void): () => void;
  close(): void;
}

/**
 * Budgets of requests, tokens or money per time, for each payer, exact over all replicas. For limits that must hold to
 * the last request, such as a provider's; `sharedQuotas` needs no round trip.
 * @throws FlowConfigError
 * @example
 * const budgets = sharedBudgets(client, {
 *   name: 'tenants',
 *   budgets: [{ name: 'rpm', limit: 600 }, { name: 'tpm', limit: 1_000_000, cost: 'tokens' }],
 * });
 * const gate = budgets.guard(flow);
 */
export function sharedBudgets<R = unknown>(
  client: RedisClient | Store,
  options: SharedBudgetsOptions<R>,
): SharedBudgets<R> {
  const store = s.parse(storeSchema, client, 'sharedBudgets: client');
  return new ExactBudgets(store, budgetSettings(options, 'sharedBudgets'));
}

/** The end of a taking is told in 0.1 s again, then in twice the time, for a minute and a half. */
const firstTryMs = 50;
const mostTries = 10;
const mostUntold = 1_000;

/** The end of a part that is given back as far as the level goes. */
const anywhere = '1e300';

class ExactBudgets<R> extends BucketStore implements SharedBudgets<R> {
  private readonly settings: BudgetSettings;
  private readonly takeHere: ReturnType<typeof fallbackShares>;
  /** Opens the names of this replica's takings. */
  private readonly replica = newReplicaId().slice(0, 8);
  private takings = 0;
  /** Ends of takings that the store is to be told again. */
  private untold = 0;

  constructor(store: Store, settings: BudgetSettings) {
    super(store, settings, `budgets "${settings.name}"`);
    this.settings = settings;
    this.takeHere = fallbackShares(settings);
  }

  async take(request: R, key: AdmissionKey): Promise<BudgetTicket | BudgetRefusal> {
    const { rates, clock, payerOf } = this.settings;
    const payer = payerOf(request, key);
    const costs = costsOf(this.settings, request, key, undefined);
    const cost = (index: number): number => costs[index] as number;
    const wide = rates.find(({ burst }, index) => cost(index) > burst);
    if (wide !== undefined) {
      const reason = `the request costs more of budget ${wide.name} than may be spent at once (${wide.burst})`;
      return { isTaken: false, reason, retryAfterMs: undefined };
    }
    const takenAtMs = clock.now();
    const name = `${this.replica}.${(this.takings++).toString(36)}`;
    const sales = await this.pay(payer, costs, name);
    if ('isTaken' in sales) return sales;
    let isOpen = true;
    const settle = async (actual: readonly number[]): Promise<void> => {
      if (!isOpen) return;
      isOpen = false;
      const ends = rates.map((rate, index) => {
        const amount = actual[index] as number;
        const sale = sales[index];
        // What was used here without the store is charged late, unless a whole period has passed since.
        const charge = clock.now() - takenAtMs > rate.perMs ? 0 : amount;
        if (sale === undefined) return purchaseOf(rate, { charge, undo: cost(index) });
        // The store takes back what it sold, and nothing of what it sold before it lost the budget.
        const back = [{ epoch: sale.epoch, end: anywhere, amount: Math.max(0, cost(index) - amount) }];
        return purchaseOf(rate, { charge: Math.max(0, amount - cost(index)), back });
      });
      await this.tell(payer, ends, name);
    };
    return {
      isTaken: true,
      isLocal: sales.length === 0,
      settle: (usage) => settle(costsOf(this.settings, request, key, usage)),
      refund: () => settle(rates.map(() => 0)),
    };
  }

  async peek(payer: string): Promise<BudgetBalance | undefined> {
    const { rates } = this.settings;
    const nothing = rates.map((rate) => purchaseOf(rate, {}));
    const sales = await this.buy(this.keysOf(payer), nothing).catch(() => undefined);
    const balances = sales?.map(({ level }, index) => [rates[index]?.name, (rates[index]?.burst ?? 0) - level]);
    return balances && Object.fromEntries(balances);
  }

  guard<Q extends R & FlowRequest>(flow: GuardedFlow<Q>): FlowGate<Q> {
    const tickets = new WeakMap<Lease, BudgetTicket>();
    flow.on('released', ({ lease, usage }) => void tickets.get(lease)?.settle(usage));
    return {
      enqueue: async (request: Q, key: FlowKey): Promise<Outcome> => {
        const { fairnessId, priority = 0 } = key;
        const answer = await this.take(request, { fairnessId, priority });
        if (!answer.isTaken) return dropOf(fairnessId, priority, answer);
        let outcome: Outcome | undefined;
        try {
          outcome = await flow.enqueue(request, key);
        } finally {
          if (outcome?.type === 'Dispatched') tickets.set((outcome as Dispatched).lease, answer);
          else void answer.refund();
        }
        return outcome;
      },
    };
  }

  /** Takes all costs; no sales where this replica's share paid them, because the store is away. Or a refusal. */
  private async pay(payer: string, costs: readonly number[], name: string): Promise<readonly Sale[] | BudgetRefusal> {
    const { rates } = this.settings;
    const purchases = rates.map((rate, index) => {
      const cost = costs[index] as number;
      return purchaseOf(rate, { least: cost, most: cost });
    });
    try {
      const sales = await this.buy(this.keysOf(payer), purchases, { mark: `+${name}` });
      if (isSold(sales, purchases)) return sales;
      const waits = rates.map(({ burst, perMs, limit }, index) => {
        const cost = costs[index] as number;
        return cost === 0 ? 0 : (((sales[index] as Sale).level + cost - burst) * perMs) / limit;
      });
      return refusal(Math.max(1, Math.ceil(Math.max(...waits))));
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      const waitMs = this.takeHere(payer, costs);
      if (waitMs === 0) return [];
      // The store may have granted it, or may do so yet.
      const undone = rates.map((rate, index) => purchaseOf(rate, { undo: costs[index] as number }));
      if (!error.isUnsent) void this.tell(payer, undone, name);
      return refusal(waitMs);
    }
  }

  /** Ends a taking, again until the store has answered: it counts once. Never rejects. */
  private async tell(payer: string, ends: readonly Purchase[], name: string, tries = 1): Promise<void> {
    const { clock } = this.settings;
    try {
      await this.buy(this.keysOf(payer), ends, { mark: `-${name}` });
    } catch {
      if (tries === mostTries || this.untold >= mostUntold) return;
      this.untold++;
      const again = (): void => {
        this.untold--;
        void this.tell(payer, ends, name, tries + 1);
      };
      letProcessEnd(clock.setTimeout(again, firstTryMs * 2 ** tries));
    }
  }

  private keysOf(payer: string): string[] {
    return this.settings.rates.map(({ name }) => bucketKey(this.settings, payer, name));
  }
}

function refusal(retryAfterMs: number): BudgetRefusal {
  return { isTaken: false, reason: 'the budget is spent', retryAfterMs };
}

function dropOf(fairnessId: string, priority: number, { reason: detail, retryAfterMs }: BudgetRefusal): Drop {
  const told = { queuedMs: 0, policy: 'shared-budgets', detail, retryAfterMs };
  return { type: 'RejectedCapacity', reason: 'over-budget', fairnessId, priority, ...told };
}

/** A part of each rate while the store is away. Takes all costs or none; returns ms to wait, 0 if it took. O(rates) */
function fallbackShares(settings: BudgetSettings): (payer: string, costs: readonly number[]) => number {
  const { rates, clock, maxPayers } = settings;
  const byPayer = new Map<string, { readonly part: number; readonly ofRates: readonly FallbackShare[] }>();
  return (payer, costs) => {
    const nowMs = clock.now();
    const part = fallbackPart(settings);
    const known = byPayer.get(payer);
    const used = (index: number): number => known?.ofRates[index]?.usedByAll(nowMs) ?? 0;
    // The number of replicas may have changed; what was used counts on.
    const begin = () => rates.map((rate, index) => new FallbackShare(rate, part, used(index), nowMs));
    const ofRates = known?.part === part ? known.ofRates : begin();
    const roomAtMs = ofRates.map((share, index) => {
      const cost = costs[index] as number;
      return cost === 0 ? nowMs : share.roomAtMs(cost, nowMs);
    });
    const waitMs = Math.max(nowMs, ...roomAtMs) - nowMs;
    if (waitMs > 0) return Math.ceil(waitMs);
    for (const [index, share] of ofRates.entries()) share.take(costs[index] as number, nowMs);
    putLatest(byPayer, payer, { part, ofRates }, maxPayers);
    return 0;
  };
}
