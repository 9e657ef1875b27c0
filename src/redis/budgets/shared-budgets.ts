/**
 * Budgets that all replicas share, exactly: one round trip for each request, before it comes in.
 *
 * Invariant: every ticket is settled once; the limits hold over all replicas, plus what settling charges later.
 */
import type {
  AdmissionKey,
  Dispatched,
  Drop,
  FlowGate,
  FlowKey,
  FlowRequest,
  Lease,
  Outcome,
  Usage,
} from '../../index.js';
import { schemas } from '../../index.js';
import { numbersOf } from '../store/answer.js';
import { budgetKeys } from '../store/keys.js';
import { ProblemListeners } from '../store/problem-listeners.js';
import { type RedisClient, redisClient } from '../store/redis-client.js';
import { type LinkFigures, StoreLink } from '../store/store-link.js';
import { type EngineProblem, StoreError } from '../store/store-problem.js';
import {
  type BudgetSettings,
  budgetSettings,
  checkedCost,
  type SharedBudgetsOptions,
  spanOf,
} from './budget-options.js';
import { budgetScript } from './budget-script.js';
import { LocalRates } from './local-rate.js';

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
  readonly engine: LinkFigures;
  /** Calls `listener` for each kind of problem; returns a function that stops this. */
  onProblem(listener: (problem: EngineProblem) => void): () => void;
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
export function sharedBudgets<R = unknown>(client: RedisClient, options: SharedBudgetsOptions<R>): SharedBudgets<R> {
  schemas.parse(redisClient, client, 'sharedBudgets: client');
  const store = new BudgetStore(client, budgetSettings(options, 'sharedBudgets'));
  const { settings } = store;
  const local = new LocalRates(settings);

  async function take(request: R, key: AdmissionKey): Promise<BudgetTicket | BudgetRefusal> {
    const payer = settings.payerOf(request, key);
    const costs = store.costsOf(request, key, undefined);
    const wide = settings.rates.find(({ burst }, index) => (costs[index] as number) > burst);
    if (wide !== undefined) {
      const reason = `the request costs more of budget ${wide.name} than may be spent at once (${wide.burst})`;
      return { isTaken: false, reason, retryAfterMs: undefined };
    }
    const takenAtMs = settings.clock.now();
    try {
      const { isTaken, retryAfterMs } = await store.call('take', payer, costs, true);
      return isTaken ? ticket(request, key, payer, costs, undefined) : refusal(retryAfterMs);
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      const waitMs = local.take(payer, costs);
      return waitMs === 0 ? ticket(request, key, payer, costs, takenAtMs) : refusal(waitMs);
    }
  }

  /** `localAtMs`: when it was taken here, without the store. */
  function ticket(
    request: R,
    key: AdmissionKey,
    payer: string,
    costs: readonly number[],
    localAtMs: number | undefined,
  ): BudgetTicket {
    let isOpen = true;
    const settle = async (actual: readonly number[]): Promise<void> => {
      if (!isOpen) return;
      isOpen = false;
      // Units that were used here without the store are charged later, unless a whole burst has passed since.
      const isOld = (periodUs: number): boolean =>
        localAtMs !== undefined && (settings.clock.now() - localAtMs) * 1_000 > periodUs;
      const differences = actual.map((amount, index) => {
        const { periodUs } = settings.rates[index] as BudgetSettings['rates'][number];
        if (localAtMs === undefined) return amount - (costs[index] as number);
        return isOld(periodUs) ? 0 : amount;
      });
      if (differences.some((difference) => difference !== 0))
        await store.call('settle', payer, differences).catch(() => {});
    };
    return {
      isTaken: true,
      isLocal: localAtMs !== undefined,
      settle: (usage) => settle(store.costsOf(request, key, usage)),
      refund: () => settle(costs.map(() => 0)),
    };
  }

  return {
    take,
    async peek(payer) {
      try {
        const { left } = await store.call(
          'peek',
          payer,
          settings.rates.map(() => 0),
        );
        return Object.fromEntries(settings.rates.map(({ name }, index) => [name, left[index] as number]));
      } catch {
        return undefined;
      }
    },
    guard: (flow) => guard(flow, take as never),
    get engine() {
      return store.figures;
    },
    onProblem: (listener) => store.onProblem(listener),
    close: () => store.close(),
  };
}

function refusal(retryAfterMs: number): BudgetRefusal {
  return { isTaken: false, reason: 'the budget is spent', retryAfterMs };
}

function guard<R extends FlowRequest>(flow: GuardedFlow<R>, take: SharedBudgets<R>['take']): FlowGate<R> {
  const tickets = new WeakMap<Lease, BudgetTicket>();
  flow.on('released', ({ lease, usage }) => void tickets.get(lease)?.settle(usage));
  return {
    async enqueue(request: R, key: FlowKey): Promise<Outcome> {
      const { fairnessId, priority = 0 } = key;
      const answer = await take(request, { fairnessId, priority });
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

interface BudgetAnswer {
  readonly isTaken: boolean;
  readonly retryAfterMs: number;
  /** Of each rate; negative where more was used than there was. */
  readonly left: readonly number[];
}

/** Undefined for anything but an answer of the script: no budget has more left than its burst. */
function answerOf(reply: unknown, rates: BudgetSettings['rates']): BudgetAnswer | undefined {
  const [taken, waitUs = -1, ...spans] = numbersOf(reply, rates.length + 2) ?? [];
  const isTaken = taken === 1;
  const isOne =
    (isTaken ? waitUs === 0 : taken === 0 && waitUs > 0 && waitUs <= Number.MAX_SAFE_INTEGER) &&
    rates.every((rate, index) => (spans[index] ?? Number.NaN) <= spanOf(rate, rate.burst));
  if (!isOne) return undefined;
  const left = rates.map(({ limit, periodUs }, index) => ((spans[index] ?? 0) * limit) / periodUs);
  return { isTaken, retryAfterMs: Math.ceil(waitUs / 1_000), left };
}

/** The calls of the budgets' script. */
export class BudgetStore {
  readonly settings: BudgetSettings;
  private readonly link: StoreLink;
  private readonly problems = new ProblemListeners();

  constructor(client: RedisClient, settings: BudgetSettings) {
    this.settings = settings;
    const { timeoutMs, clock, random, name } = settings;
    this.link = new StoreLink(client, { timeoutMs, clock, random, where: `budgets "${name}"` }, this.problems);
  }

  get figures(): LinkFigures {
    return this.link.figures;
  }

  /** The cost for each rate. @throws RangeError for a cost that is no number from 0 up */
  costsOf(request: unknown, key: AdmissionKey, usage: Usage | undefined): number[] {
    return this.settings.rates.map((rate) => checkedCost(rate.costOf(request, key, usage), rate));
  }

  /**
   * `undoesLate`: a taking whose answer comes after the time limit is given back, because its caller went on without
   * it.
   * @throws (rejects) StoreError
   */
  async call(
    mode: 'take' | 'settle' | 'peek',
    payer: string,
    amounts: readonly number[],
    undoesLate = false,
  ): Promise<BudgetAnswer> {
    const { rates } = this.settings;
    const keys = budgetKeys(this.settings, payer, rates);
    const args: string[] = [mode];
    for (const [index, rate] of rates.entries())
      args.push(String(spanOf(rate, amounts[index] as number)), String(spanOf(rate, rate.burst)));
    const undo = ({ isTaken }: BudgetAnswer): void => {
      if (undoesLate && isTaken)
        void this.call(
          'settle',
          payer,
          amounts.map((amount) => -amount),
        ).catch(() => {});
    };
    return this.link.ask(budgetScript, keys, args, (reply) => answerOf(reply, rates), undo);
  }

  onProblem(listener: (problem: EngineProblem) => void): () => void {
    return this.problems.add(listener);
  }

  close(): void {
    this.link.close();
  }
}
