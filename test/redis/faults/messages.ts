/** What the observer and the replicas tell each other. */

/** From the observer: how to take part in one run, how much to ask for, and what it has noted. */
export type Order =
  | { readonly type: 'join'; readonly run: number; readonly plan: ReplicaPlan }
  | { readonly type: 'demand'; readonly requests: number }
  | { readonly type: 'noted'; readonly id: number }
  | { readonly type: 'leave' };

/**
 * What is limited in each run: the requests of a pool, its tokens, and the requests of each of two endpoints. Each is a
 * pool of its own.
 */
export const counters = ['requests', 'tokens', 'endpoint a', 'endpoint b'] as const;
export type Counter = (typeof counters)[number];
export type Limits = Readonly<Record<Counter, number>>;

/** A request holds 1 up to so many tokens. */
export const mostTokens = 5;

export interface ReplicaPlan {
  readonly port: number;
  readonly client: 'ioredis' | 'redis' | 'iovalkey';
  readonly pool: string;
  readonly limits: Limits;
  readonly seed: number;
  readonly refreshMs: number;
  readonly leaseMs: number;
  readonly drainMs: number;
  readonly longestMs: number;
  /** Its wall clock is so far off. */
  readonly skewMs: number;
  /** Without the step of the script that covers lost replies: the run is expected to exceed the limit. */
  readonly isControl: boolean;
}

/**
 * From a replica: it takes seats, or tokens, for so long, or is about to give them back; it waits until that is noted.
 */
export type Report =
  | {
      readonly type: 'take';
      readonly run: number;
      readonly id: number;
      readonly forMs: number;
      readonly counter: Counter;
      readonly amount: number;
    }
  | { readonly type: 'give'; readonly run: number; readonly id: number }
  | { readonly type: 'left'; readonly run: number; readonly problems: readonly string[] };
