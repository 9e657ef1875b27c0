/**
 * Budgets that all replicas share, in chunks: a replica buys units ahead, and admits requests as long as it has some.
 *
 *     store ── chunk ──► holdings of the payer here ── cost ──► requests
 *
 * Invariant: over any span of time replicas admit at most burst + rate · span + replicas · chunk (a second of the rate
 * if requests are larger), plus what running ones give back. A new payer has a chunk on credit, charged at once.
 */
import * as s from '../../base/schema/schema.js';
import type { AdmissionPolicy, Usage } from '../../index.js';
import type { AdmissionKey, Rejection } from '../../types/index.js';
import { BucketStore } from '../buckets/bucket-store.js';
import type { HeldTaking } from '../buckets/holdings.js';
import { SharedWindow } from '../buckets/shared-window.js';
import { bucketKey } from '../store/keys.js';
import { type RedisClient, storeSchema } from '../store/redis-store.js';
import type { Store } from '../store/store.js';
import type { LinkFigures } from '../store/store-link.js';
import type { StoreProblem } from '../store/store-problem.js';
import { budgetSettings, costsOf, type SharedBudgetsOptions } from './budget-options.js';

/** The budgets that replicas share, and in which parts a replica buys them. */
export interface SharedBudgetAdmissionOptions<R = unknown> extends SharedBudgetsOptions<R> {
  /**
   * The part of a limit that a replica buys at once, as seconds of its rate, above 0. @default 1 / (2 · replicas), or
   * two usual requests if that is more; all replicas together a quarter of the burst at most
   */
  readonly chunkSeconds?: number | undefined;
}

export interface SharedBudgetAdmission<R = unknown> extends AdmissionPolicy<R> {
  /** Units that this replica has bought and not used, of each budget; undefined for a payer that is not known here. */
  balance(payer: string): Readonly<Record<string, number>> | undefined;
  readonly store: LinkFigures;
  onProblem(listener: (problem: StoreProblem) => void): () => void;
  /** Gives back what was bought and not used. Never rejects. */
  close(): Promise<void>;
}

type Payer<R> = { readonly windows: readonly SharedWindow[]; readonly running: Map<R, HeldTaking[][]> };

/** A replica that waits for units asks ten times in this span at most. */
const refreshMs = 1_000;

/**
 * Admission by shared budgets without a round trip. A rejection says when there may be room, kept for a second.
 * O(budgets) a request; one call of the store a chunk. @throws FlowConfigError
 */
export function sharedBudgetAdmission<R = unknown>(
  client: RedisClient | Store,
  { chunkSeconds, ...options }: SharedBudgetAdmissionOptions<R>,
): SharedBudgetAdmission<R> {
  const subject = 'sharedBudgetAdmission';
  const given = s.parse(storeSchema, client, `${subject}: client`);
  const seconds = s.parse(s.optional(s.aboveZero()), chunkSeconds, `${subject}: chunkSeconds`);
  const settings = budgetSettings(options, subject);
  const { rates, clock, maxPayers, name } = settings;
  const store = new BucketStore(given, settings, `budgets "${name}"`);
  const payers = new Map<string, Payer<R>>();

  function open(payer: string): Payer<R> {
    const buying = { ...settings, refreshMs, isStrict: false, chunkMs: seconds && seconds * 1_000 };
    const windows = rates.map((rate) => {
      const key = bucketKey(settings, payer, rate.name);
      return new SharedWindow(rate, buying, (purchase, onLate) => store.buyOne(key, purchase, onLate), true);
    });
    const opened: Payer<R> = { windows, running: new Map() };
    payers.set(payer, opened);
    const [[oldest, unused] = []] = payers.size > maxPayers ? payers : [];
    for (const window of unused?.windows ?? []) window.retire();
    if (oldest !== undefined) payers.delete(oldest);
    return opened;
  }

  return {
    type: 'shared-budget-admission',
    balance(payer) {
      const windows = payers.get(payer)?.windows;
      const balances = windows?.map((window, index) => [rates[index]?.name, window.status(clock.now()).balance]);
      return balances && Object.fromEntries(balances);
    },
    get store() {
      return store.store;
    },
    onProblem: (listener) => store.onProblem(listener),
    admit(request: R, key: AdmissionKey): 'admit' | Rejection {
      const nowMs = clock.now();
      const payer = settings.payerOf(request, key);
      const costs = costsOf(settings, request, key, undefined);
      const { windows, running } = payers.get(payer) ?? open(payer);
      const cost = (index: number): number => costs[index] as number;
      const lacking = windows.filter((window, index) => window.roomAtMs(cost(index), nowMs) > nowMs);
      if (lacking.length === 0) {
        const takings = windows.map((window, index) => window.take(cost(index)));
        running.set(request, [...(running.get(request) ?? []), takings]);
        return 'admit';
      }
      for (const window of lacking) window.wants(cost(windows.indexOf(window)), nowMs);
      const waits = lacking.map((window) => window.roomAtMs(cost(windows.indexOf(window)), nowMs) - nowMs);
      const retryAfterMs = Math.ceil(Math.max(settings.callTimeout, ...waits));
      return { reason: 'the budget is spent', cause: 'budget', retryAfterMs };
    },
    released(request: R, key: AdmissionKey, usage: Usage | undefined) {
      const payer = payers.get(settings.payerOf(request, key));
      const takings = payer?.running.get(request);
      const taken = takings?.pop();
      if (payer === undefined || takings === undefined || taken === undefined) return;
      if (takings.length === 0) payer.running.delete(request);
      const actual = usage === undefined ? undefined : costsOf(settings, request, key, usage);
      for (const [index, window] of payer.windows.entries())
        window.settle(taken[index] as HeldTaking, actual?.[index] ?? 0, clock.now());
    },
    async close() {
      const windows = [...payers.values()].flatMap((payer) => payer.windows);
      payers.clear();
      await Promise.all(windows.map((window) => window.close()));
      store.close();
    },
  };
}
