/**
 * Budgets that all replicas share, in chunks: a replica buys units ahead, and admits requests as long as it has some.
 *
 *     store ── chunk ──► balance of the payer here ── cost ──► requests
 *
 * Invariant: over any span of time replicas admit at most burst + rate · span + replicas · chunk. A payer that is new
 * here begins with one chunk on credit, which the store is charged for at once.
 */
import { type AdmissionKey, type AdmissionPolicy, type Refusal, schemas, type Usage } from '../../index.js';
import { type RedisClient, redisClient } from '../store/redis-client.js';
import type { LinkFigures } from '../store/store-link.js';
import type { EngineProblem } from '../store/store-problem.js';
import { budgetSettings, type Rate, type SharedBudgetsOptions } from './budget-options.js';
import { LocalRates } from './local-rate.js';
import { BudgetStore } from './shared-budgets.js';

export interface SharedBudgetAdmissionOptions<R = unknown> extends SharedBudgetsOptions<R> {
  /** The part of a limit that a replica buys at once, as seconds of its rate. @default 1 / (2 · replicas) */
  readonly chunkSeconds?: number | undefined;
}

export interface SharedBudgetAdmission<R = unknown> extends AdmissionPolicy<R> {
  /** Units that this replica has bought and not used, of each budget; undefined for a payer that is not known here. */
  balance(payer: string): Readonly<Record<string, number>> | undefined;
  readonly engine: LinkFigures;
  onProblem(listener: (problem: EngineProblem) => void): () => void;
  /** Gives back what was bought and not used. Never rejects. */
  close(): Promise<void>;
}

/** The budgets of one payer here. */
interface Account {
  readonly balances: number[];
  isBuying: boolean;
  /** The store has nothing more before this instant. */
  blockedUntilMs: number;
}

/**
 * Admission by shared budgets without a round trip. Rejects when this replica has bought nothing more, with the time
 * when it may. O(budgets) for each request; one call of the store for each chunk.
 * @throws FlowConfigError
 */
export function sharedBudgetAdmission<R = unknown>(
  client: RedisClient,
  options: SharedBudgetAdmissionOptions<R>,
): SharedBudgetAdmission<R> {
  schemas.parse(redisClient, client, 'sharedBudgetAdmission: client');
  const { chunkSeconds, ...rest } = options;
  const seconds = schemas.parse(
    schemas.optional(schemas.aboveZero()),
    chunkSeconds,
    'sharedBudgetAdmission: chunkSeconds',
  );
  const settings = budgetSettings(rest, 'sharedBudgetAdmission');
  const store = new BudgetStore(client, settings);
  const local = new LocalRates(settings);
  const accounts = new Map<string, Account>();
  const { rates, clock, maxPayers, timeoutMs } = settings;

  const chunkOf = ({ limit, periodUs, burst }: Rate): number => {
    const ofRate = ((limit * 1e6) / periodUs) * (seconds ?? 1 / (2 * Math.max(1, settings.replicas())));
    return Math.min(burst, Math.max(1, ofRate));
  };

  function accountOf(payer: string): Account {
    const known = accounts.get(payer);
    if (known !== undefined) return known;
    const account: Account = { balances: rates.map(chunkOf), isBuying: true, blockedUntilMs: 0 };
    accounts.set(payer, account);
    if (accounts.size > maxPayers) forgetOldest();
    void charge(payer, account, rates.map(chunkOf));
    return account;
  }

  /** The oldest payer makes room. */
  function forgetOldest(): void {
    for (const [payer, account] of accounts) {
      accounts.delete(payer);
      void giveBack(payer, account);
      return;
    }
  }

  /** Gives back what was bought and not used. Never rejects. */
  async function giveBack(payer: string, { balances }: Account): Promise<void> {
    const unused = balances.map((balance) => -Math.max(0, balance));
    if (unused.some((amount) => amount < 0)) await store.call('settle', payer, unused).catch(() => {});
  }

  async function charge(payer: string, account: Account, amounts: readonly number[]): Promise<void> {
    try {
      await store.call('settle', payer, amounts);
    } catch {
      // Without a store the credit stands against this replica's fallback share.
      local.take(payer, amounts);
    }
    account.isBuying = false;
  }

  /** Buys a chunk of each rate that runs low. */
  async function buy(payer: string, account: Account): Promise<void> {
    account.isBuying = true;
    const amounts = rates.map((rate, index) => {
      const chunk = chunkOf(rate);
      const balance = account.balances[index] as number;
      return balance < chunk / 2 ? Math.min(rate.burst, chunk - Math.min(0, balance)) : 0;
    });
    const waitMs = await store.call('take', payer, amounts, true).then(
      ({ isTaken, retryAfterMs }) => (isTaken ? 0 : retryAfterMs),
      () => local.take(payer, amounts),
    );
    if (waitMs === 0)
      for (const [index, amount] of amounts.entries())
        account.balances[index] = (account.balances[index] as number) + amount;
    else account.blockedUntilMs = clock.now() + waitMs;
    account.isBuying = false;
  }

  function replenish(payer: string, account: Account, nowMs: number): void {
    if (account.isBuying || nowMs < account.blockedUntilMs) return;
    if (account.balances.some((balance, index) => balance < chunkOf(rates[index] as Rate) / 2))
      void buy(payer, account);
  }

  return {
    type: 'shared-budget-admission',
    balance(payer) {
      const account = accounts.get(payer);
      return account && Object.fromEntries(rates.map(({ name }, index) => [name, account.balances[index] as number]));
    },
    get engine() {
      return store.figures;
    },
    onProblem: (listener) => store.onProblem(listener),
    admit(request: R, key: AdmissionKey): 'admit' | Refusal {
      const nowMs = clock.now();
      const payer = settings.payerOf(request, key);
      const costs = store.costsOf(request, key, undefined);
      const account = accountOf(payer);
      const isPaid = account.balances.every(
        (balance, index) => balance >= Math.min(costs[index] as number, chunkOf(rates[index] as Rate)),
      );
      if (isPaid)
        for (const [index, cost] of costs.entries())
          account.balances[index] = (account.balances[index] as number) - cost;
      replenish(payer, account, nowMs);
      if (isPaid) return 'admit';
      return {
        reason: 'the budget is spent',
        retryAfterMs: Math.max(timeoutMs, Math.ceil(account.blockedUntilMs - nowMs)),
      };
    },
    released(request: R, key: AdmissionKey, usage: Usage | undefined) {
      const account = accounts.get(settings.payerOf(request, key));
      if (account === undefined) return;
      const booked = store.costsOf(request, key, undefined);
      const actual = usage === undefined ? booked.map(() => 0) : store.costsOf(request, key, usage);
      for (const [index, cost] of actual.entries()) {
        const balance = (account.balances[index] as number) + (booked[index] as number) - cost;
        account.balances[index] = Math.min(balance, 2 * chunkOf(rates[index] as Rate));
      }
    },
    async close() {
      const all = [...accounts];
      accounts.clear();
      await Promise.all(all.map(([payer, account]) => giveBack(payer, account)));
      store.close();
    },
  };
}
