/** May a request come in at all? The contract of admission policies, which decide before the queue. */
import type { PluginShape } from '../base/plugin-shape.js';
import type { PoolView } from '../endpoints/endpoint.js';
import type { Usage } from '../tiers/views.js';

/** The flow that a request belongs to. */
export interface AdmissionKey {
  readonly fairnessId: string;
  readonly priority: number;
}

/** The state that a policy may read besides the request. */
export interface AdmissionView {
  readonly nowMs: number;
  readonly pool: PoolView;
  /** Requests waiting in the controller; 0 for a policy used alone. */
  readonly waiting: number;
  /** How full the pool is; full from 1 up and without endpoints. Measured once for each decision. */
  saturation(): number;
}

/** The answer of a policy that does not let a request in. */
export interface Rejection {
  /** The reason in the policy's words; it becomes `drop.detail`. */
  readonly reason: string;
  /** The policy that rejected, where one policy calls others. @default the policy that was called */
  readonly policy?: string | undefined;
  /** `saturated`: 429. `overloaded`: all workers are busy (503, or 529). `budget`: 429. @default 'saturated' */
  readonly cause?: 'saturated' | 'overloaded' | 'budget' | undefined;
  readonly retryAfterMs?: number | undefined;
}

/**
 * Rejects requests before anything is queued. Contract: `admit` decides at once and changes only the policy's own
 * state. Each request that it admits is given back by one call of `released`, whether it was rejected later or dropped
 * (no usage), or ran (usage as reported). An exception is a plugin error, and the request comes in. Cost: once for each
 * request, O(1) expected. State: its own; one policy object belongs to one controller.
 */
export interface AdmissionPolicy<R = unknown> {
  readonly type: string;
  admit(request: R, key: AdmissionKey, view: AdmissionView): 'admit' | Rejection;
  /** `nowMs`: the end on the controller's clock; undefined where the policy's user does not say. */
  released?(request: R, key: AdmissionKey, usage: Usage | undefined, nowMs?: number): void;
}

export const admissionPolicyShape: PluginShape<AdmissionPolicy> = {
  noun: 'an admission policy',
  example: 'tokenBucket()',
  required: ['admit'],
  optional: ['released'],
};
