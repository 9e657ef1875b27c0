/**
 * Quotas of hosted models that all replicas share: a source for `quotaDetector().drawFrom`.
 *
 * Invariant: each quota is one bucket of the store, under a key of its own; the breaker and the figures of calls are
 * common to all.
 */
import { type QuotaSource, type QuotaTerms, type QuotaWindow, schemas } from '../../index.js';
import { quotaSettings, type SharedQuotasOptions } from '../buckets/bucket-options.js';
import { quotaScript } from '../buckets/bucket-script.js';
import { type Purchase, type PurchaseAnswer, SharedWindow } from '../buckets/shared-window.js';
import { numbersOf } from '../store/answer.js';
import { quotaKey } from '../store/keys.js';
import { ProblemListeners } from '../store/problem-listeners.js';
import { type RedisClient, redisClient } from '../store/redis-client.js';
import { type LinkFigures, StoreLink } from '../store/store-link.js';
import type { EngineProblem } from '../store/store-problem.js';

/** The part of one quota that a replica has. */
export interface SharedQuotaStatus {
  /** The quota: its group, its unit and its span. */
  readonly key: string;
  /** Units that were bought here and not used. */
  readonly balance: number;
  /** Units that all replicas have used, as far as this replica knows. */
  readonly used: number;
  readonly limit: number;
  /** True while this replica's fallback share is in force, because the store is away. */
  readonly isLocal: boolean;
}

export interface SharedQuotas extends QuotaSource {
  readonly name: string;
  readonly status: readonly SharedQuotaStatus[];
  readonly engine: LinkFigures;
  /** Calls `listener` for each kind of problem; returns a function that stops this. */
  onProblem(listener: (problem: EngineProblem) => void): () => void;
  /**
   * Gives back the units that were bought and not used; afterwards no request passes. Close the controller first. Never
   * rejects.
   */
  close(): Promise<void>;
}

/**
 * One quota for many replicas, as a source that a quota detector draws from. Requests wait as they do for a quota of
 * one process. None waits for the network while the chunk that was bought ahead lasts. A chunk is half a
 * `refreshInterval` of this replica's part, or one request if that is more.
 *
 * Over any span of time replicas dispatch at most burst + rate · span, if there are no more than `replicas` and no
 * request is larger than a chunk. Each further replica, and each larger request that waits, adds what it has bought. At
 * most replicas · chunk lie unused. Source: GCRA, ITU-T I.371.
 * @throws FlowConfigError
 * @example
 * const quotas = quotaDetector({ groups: [{ by: 'label', label: 'account', quotas: [{ unit: 'tokens', limit: 1_000_000
 * }] }] }); quotas.drawFrom(sharedQuotas(client, { name: 'openai', replicas: 3 }));
 */
export function sharedQuotas(client: RedisClient, options: SharedQuotasOptions): SharedQuotas {
  schemas.parse(redisClient, client, 'sharedQuotas: client');
  const settings = quotaSettings(options, 'sharedQuotas');
  const { name, timeoutMs, clock, random, refreshMs } = settings;
  const problems = new ProblemListeners();
  const link = new StoreLink(
    client,
    { timeoutMs, clock, random, where: `quotas "${name}"`, longestRetryMs: refreshMs },
    problems,
  );
  const windows = new Map<string, SharedWindow>();
  /** The quotas that were given a first chunk on credit: a reload must not give another. */
  const known = new Set<string>();

  function market(key: string, purchase: Purchase, onLate: (sale: PurchaseAnswer) => void): Promise<PurchaseAnswer> {
    const read = (reply: unknown): PurchaseAnswer | undefined => saleOf(reply, purchase);
    return link.ask(quotaScript, [quotaKey(settings, key)], argumentsOf(purchase), read, onLate);
  }

  return {
    name,
    window(terms: QuotaTerms): QuotaWindow {
      // Two groups of one name are two quotas, in the order of the options.
      let key = terms.key;
      for (let number = 2; windows.has(key); number++) key = `${terms.key} #${number}`;
      const window = new SharedWindow({ ...terms, key }, settings, market, !known.has(key), () => windows.delete(key));
      if (known.size < mostKnown) known.add(key);
      windows.set(key, window);
      return window;
    },
    get status() {
      const nowMs = clock.now();
      return [...windows.values()].map((window) => {
        return {
          key: window.key,
          balance: window.balance,
          used: window.used(nowMs),
          limit: window.limit,
          isLocal: window.isAway,
        };
      });
    },
    get engine() {
      return link.figures;
    },
    onProblem: (listener) => problems.add(listener),
    async close() {
      await Promise.all([...windows.values()].map((window) => window.close()));
      link.close();
    },
  };
}

/** Quotas that are remembered when nothing of them is used any more. */
const mostKnown = 10_000;

function argumentsOf({ rate, burst, charge, leastLevel, least, most, back }: Purchase): string[] {
  const batches = back.flatMap(([{ epoch, end }, amount]) => [epoch, end, String(amount)]);
  return [...[rate, burst, charge, leastLevel, least, most].map(String), ...batches];
}

/** Undefined for anything but an answer of the script: it never sells more than was asked for. */
function saleOf(reply: unknown, { most }: Purchase): PurchaseAnswer | undefined {
  const [epoch, end = Number.NaN, sold = Number.NaN, level = Number.NaN] = numbersOf(reply, 4) ?? [];
  const isOne = epoch !== undefined && 0 <= sold && sold <= Math.min(most, end) && level >= 0;
  return isOne && Array.isArray(reply) ? { epoch: String(reply[0]), end: String(reply[1]), sold, level } : undefined;
}
