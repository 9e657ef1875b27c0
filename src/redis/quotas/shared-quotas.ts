/** Quotas that all replicas share. Invariant: each is one bucket under a key of its own; the breaker is common. */
import type { QuotaSource, QuotaTerms, QuotaWindow } from '../../base/quota-window.js';
import * as s from '../../base/schema/schema.js';
import type { Duration } from '../../index.js';
import { type BucketOptions, bucketShape } from '../buckets/bucket-options.js';
import { BucketStore } from '../buckets/bucket-store.js';
import { SharedWindow, type WindowStatus } from '../buckets/shared-window.js';
import { bucketKey } from '../store/keys.js';
import { type RedisClient, storeSchema } from '../store/redis-store.js';
import type { LinkFigures, Store } from '../store/store.js';
import type { StoreProblem } from '../store/store-problem.js';

export interface SharedQuotasOptions extends BucketOptions {
  /** A replica buys ahead what its part of a quota comes to in half of this. @default '1s' */
  readonly refreshInterval?: Duration | undefined;
}

/** The part of one quota that a replica has. */
export interface SharedQuotaStatus extends WindowStatus {
  /** The quota: its group, its unit and its span. */
  readonly key: string;
}

export interface SharedQuotas extends QuotaSource {
  readonly name: string;
  readonly status: readonly SharedQuotaStatus[];
  readonly store: LinkFigures;
  /** Calls `listener` for each kind of problem; returns a function that stops this. */
  onProblem(listener: (problem: StoreProblem) => void): () => void;
  /** Gives back what was not used; no request passes then. Close the controller first. Never rejects. */
  close(): Promise<void>;
}

const optionsSchema = s.object({ ...bucketShape, refreshInterval: s.optional(s.positiveDuration('1s'), 1_000) });

/** Quotas that are remembered when nothing of them is used any more. */
const mostKnown = 10_000;

/**
 * One quota for many replicas, as a source that a quota detector draws from. No request waits for the network while the
 * chunk that was bought ahead lasts: half a `refreshInterval` of this replica's part, or one request if more. Over any
 * span of time replicas dispatch at most burst + rate · span, and each beyond `replicas` may add a chunk. At most
 * replicas · chunk lie unused. Source: GCRA, ITU-T I.371. @throws FlowConfigError
 * @example quotaDetector({ groups }).drawFrom(sharedQuotas(client, { name: 'openai', replicas: 3 }));
 */
export function sharedQuotas(client: RedisClient | Store, options: SharedQuotasOptions): SharedQuotas {
  const settings = s.parse(optionsSchema, options, 'sharedQuotas');
  const { name, clock, refreshInterval } = settings;
  const given = s.parse(storeSchema, client, 'sharedQuotas: client');
  const store = new BucketStore(given, settings, `quotas "${name}"`, refreshInterval);
  const windows = new Map<string, SharedWindow>();
  /** The quotas that were given a first chunk on credit: a reload must not give another. */
  const known = new Set<string>();

  return {
    name,
    window({ key: wanted, ...terms }: QuotaTerms): QuotaWindow {
      // Two groups of one name are two quotas, in the order of the options.
      let key = wanted;
      for (let number = 2; windows.has(key); number++) key = `${wanted} #${number}`;
      const ownKey = bucketKey(settings, key, 'quota');
      const onRetired = (): unknown => windows.delete(key);
      const window = new SharedWindow(terms, settings, store, ownKey, !known.has(key), onRetired);
      if (known.size < mostKnown) known.add(key);
      windows.set(key, window);
      return window;
    },
    get status() {
      const nowMs = clock.now();
      return [...windows].map(([key, window]) => ({ key, ...window.status(nowMs) }));
    },
    get store() {
      return store.store;
    },
    onProblem: (listener) => store.onProblem(listener),
    async close() {
      await Promise.all([...windows.values()].map((window) => window.close()));
      store.close();
    },
  };
}
