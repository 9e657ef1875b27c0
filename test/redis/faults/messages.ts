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
/** What this torture exists for, as a replica sees it. */
export const states = [
  'a lease ends without an answer',
  'a lease is granted again after its end',
  'the store begins anew under a replica',
  'a replica stops asking a store that does not answer',
  'a share grows',
  'a share becomes smaller',
] as const;
export type ReachedState = (typeof states)[number];

export const counters = ['requests', 'tokens', 'endpoint a', 'endpoint b'] as const;
export type Counter = (typeof counters)[number];
export type Limits = Readonly<Record<Counter, number>>;

/** A request holds 1 up to so many tokens. */
export const mostTokens = 5;

export interface ReplicaPlan {
  readonly port: number;
  readonly client: 'ioredis' | 'redis' | 'iovalkey';
  readonly pool: string;
  /** Of the replica; one that is restarted keeps it. */
  readonly name: string;
  /** Of the option `replicas`: one that gets no answer for a lease takes a share without having been granted it. */
  readonly replicas?: number | undefined;
  readonly limits: Limits;
  readonly seed: number;
  readonly refreshMs: number;
  readonly leaseMs: number;
  readonly drainMs: number;
  readonly forgetMs: number;
  readonly longestMs: number;
  readonly callTimeoutMs: number;
  /** Its wall clock is so far off. */
  readonly skewMs: number;
  /** Of the limit on requests without the step that covers lost answers: then the run is expected to exceed it. */
  readonly script: 'as it is' | 'without step five' | 'on a shifted clock';
  /** Undefined: it spends no quota. */
  readonly quota?: (QuotaPlan & { readonly replicas: number }) | undefined;
}

/** What each replica spends as fast as it may, in chunks. */
export interface QuotaPlan {
  readonly perMinute: number;
  readonly burst: number;
  /** Requests take 1 up to so much. */
  readonly largest: number;
}

/**
 * From a replica: it takes seats, or tokens, for so long, or is about to give them back; it waits until that is noted.
 */
export type Report =
  | { readonly type: 'joined'; readonly run: number }
  | {
      readonly type: 'take';
      readonly run: number;
      readonly id: number;
      readonly forMs: number;
      readonly counter: Counter;
      readonly amount: number;
    }
  | { readonly type: 'give'; readonly run: number; readonly id: number }
  | { readonly type: 'caps'; readonly run: number; readonly caps: Readonly<Partial<Record<Counter, number>>> }
  | { readonly type: 'spend'; readonly run: number; readonly atMs: number; readonly amount: number }
  | {
      readonly type: 'left';
      readonly run: number;
      readonly problems: readonly string[];
      readonly reached: readonly ReachedState[];
    };
