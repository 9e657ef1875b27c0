/**
 * Budgets that all replicas share, exactly: one round trip for each request, before it comes in.
 *
 * Invariant: every ticket is settled once; the limits hold over all replicas, plus what settling charges later.
 */
import { parse } from '../../base/schema/element.js';
import type { Dispatched, Drop, FlowGate, FlowKey, FlowRequest, Lease, Outcome, Usage } from '../../index.js';
import type { AdmissionKey } from '../../types/index.js';
import { BucketStore, isSold, purchaseOf, type Sale } from '../buckets/bucket-store.js';
import { FallbackShare } from '../buckets/fallback-share.js';
import { bucketKey } from '../store/keys.js';
import { type RedisClient, storeSchema } from '../store/redis-store.js';
import type { Store } from '../store/store.js';
import type { LinkFigures } from '../store/store-link.js';
import { StoreError, type StoreProblem } from '../store/store-problem.js';
import {
  type BudgetSettings,
  budgetSettings,
  costsOf,
  type Rate,
  type SharedBudgetsOptions,
} from './budget-options.js';

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
  /**
   * Takes the estimate of a request from all budgets, or from none. One round trip, or at most `callTimeout`. Never
   * rejects.
   */
  take(request: R, key: AdmissionKey): Promise<BudgetTicket | BudgetRefusal>;
  /** The rest of the budgets of a payer; undefined while the store is away. */
  peek(payer: string): Promise<BudgetBalance | undefined>;
  /**
   * The gate with the budgets in front: refused requests are `RejectedCapacity` by policy `shared-budgets`; the others
   * settle at release.
   */
  guard<Q extends R & FlowRequest>(flow: GuardedFlow<Q>): FlowGate<Q>;
  readonly store: LinkFigures;
  /** Calls `listener` for each kind of problem; returns a function that stops this. */
  onProblem(listener: (problem: StoreProblem) => void): () => void;
  close(): void;
}

/**
 * Budgets of requests, tokens or money per time, for each payer, exact over all replicas. For limits that must hold to
 * the last request, such as a provider's; where a small excess is fine, `sharedBudgetAdmission` needs no round trip.
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
  const store = parse(storeSchema, client, 'sharedBudgets: client');
  return new ExactBudgets(store, budgetSettings(options, 'sharedBudgets'));
}

class ExactBudgets<R> implements SharedBudgets<R> {
  private readonly settings: BudgetSettings;
  private readonly buckets: BucketStore;
  private readonly shares: FallbackShares;

  constructor(store: Store, settings: BudgetSettings) {
    this.settings = settings;
    this.buckets = new BucketStore(store, settings, `budgets "${settings.name}"`);
    this.shares = new FallbackShares(settings);
  }

  get store(): LinkFigures {
    return this.buckets.figures;
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
    // Units that were used here without the store are charged later, unless a whole period has passed since.
    const late = ({ perMs }: Rate, amount: number): number => (clock.now() - takenAtMs > perMs ? 0 : amount);
    const isLocal = await this.pay(payer, costs);
    if (typeof isLocal !== 'boolean') return isLocal;
    let isOpen = true;
    const settle = async (actual: readonly number[]): Promise<void> => {
      if (!isOpen) return;
      isOpen = false;
      const owed = rates.map((rate, index) => {
        const amount = actual[index] as number;
        return isLocal ? late(rate, amount) : amount - cost(index);
      });
      await this.charge(payer, owed);
    };
    return {
      isTaken: true,
      isLocal,
      settle: (usage) => settle(costsOf(this.settings, request, key, usage)),
      refund: () => settle(rates.map(() => 0)),
    };
  }

  async peek(payer: string): Promise<BudgetBalance | undefined> {
    const { rates } = this.settings;
    const nothing = rates.map((rate) => purchaseOf(rate, {}));
    const sales = await this.buckets.buy(this.keysOf(payer), nothing).catch(() => undefined);
    return (
      sales && Object.fromEntries(rates.map(({ name, burst }, index) => [name, burst - (sales[index] as Sale).level]))
    );
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

  onProblem(listener: (problem: StoreProblem) => void): () => void {
    return this.buckets.onProblem(listener);
  }

  close(): void {
    this.buckets.close();
  }

  /** Takes all costs: true where this replica's share paid them, because the store is away. Or a refusal. */
  private async pay(payer: string, costs: readonly number[]): Promise<boolean | BudgetRefusal> {
    const { rates } = this.settings;
    const purchases = rates.map((rate, index) => {
      const cost = costs[index] as number;
      return purchaseOf(rate, { least: cost, most: cost });
    });
    // A taking whose answer comes after the time limit is given back, because its caller went on without it.
    const undo = (late: readonly Sale[]): void => {
      const back = late.map(({ sold }) => -sold);
      void this.charge(payer, back);
    };
    try {
      const sales = await this.buckets.buy(this.keysOf(payer), purchases, undo);
      if (isSold(sales, purchases)) return false;
      const waits = rates.map(({ burst, perMs, limit }, index) => {
        const cost = costs[index] as number;
        return cost === 0 ? 0 : (((sales[index] as Sale).level + cost - burst) * perMs) / limit;
      });
      return refusal(Math.max(1, Math.ceil(Math.max(...waits))));
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      const waitMs = this.shares.take(payer, costs);
      return waitMs === 0 || refusal(waitMs);
    }
  }

  /** Charges amounts above 0, and gives those below back. Never rejects. */
  private async charge(payer: string, amounts: readonly number[]): Promise<void> {
    const purchases = this.settings.rates.map((rate, index) => purchaseOf(rate, { charge: amounts[index] as number }));
    if (amounts.some((amount) => amount !== 0)) await this.buckets.buy(this.keysOf(payer), purchases).catch(() => {});
  }

  private keysOf(payer: string): string[] {
    return this.settings.rates.map(({ name }) => bucketKey(this.settings, payer, name));
  }
}

function refusal(retryAfterMs: number): BudgetRefusal {
  return { isTaken: false, reason: 'the budget is spent', retryAfterMs };
}

function dropOf(fairnessId: string, priority: number, { reason: detail, retryAfterMs }: BudgetRefusal): Drop {
  return {
    type: 'RejectedCapacity',
    reason: 'refused',
    fairnessId,
    priority,
    queuedMs: 0,
    policy: 'shared-budgets',
    detail,
    retryAfterMs,
  };
}

interface Shares {
  readonly part: number;
  readonly ofRates: readonly FallbackShare[];
}

/** What payers take while the store is away: of each rate a part. */
class FallbackShares {
  private readonly byPayer = new Map<string, Shares>();
  private readonly settings: BudgetSettings;

  constructor(settings: BudgetSettings) {
    this.settings = settings;
  }

  /** Takes all costs or none. Returns the ms until the request would pass; 0 when it did. O(rates). */
  take(payer: string, costs: readonly number[]): number {
    const { clock, maxPayers } = this.settings;
    const nowMs = clock.now();
    const shares = this.sharesOf(payer, nowMs);
    const roomAtMs = shares.ofRates.map((share, index) => {
      const cost = costs[index] as number;
      return cost === 0 ? nowMs : share.roomAtMs(cost, nowMs);
    });
    const waitMs = Math.max(nowMs, ...roomAtMs) - nowMs;
    if (waitMs > 0) return Math.ceil(waitMs);
    for (const [index, share] of shares.ofRates.entries()) share.take(costs[index] as number, nowMs);
    this.byPayer.delete(payer);
    this.byPayer.set(payer, shares);
    // The payer that has not paid for the longest time is removed first.
    const [oldest] = this.byPayer.keys();
    if (oldest !== undefined && this.byPayer.size > maxPayers) this.byPayer.delete(oldest);
    return 0;
  }

  /** The number of replicas may have changed; what was used counts on. */
  private sharesOf(payer: string, nowMs: number): Shares {
    const { rates, fallbackPart } = this.settings;
    const part = fallbackPart();
    const known = this.byPayer.get(payer);
    if (known?.part === part) return known;
    const used = (index: number): number => known?.ofRates[index]?.usedByAll(nowMs) ?? 0;
    return { part, ofRates: rates.map((rate, index) => new FallbackShare(rate, part, used(index), nowMs)) };
  }
}
