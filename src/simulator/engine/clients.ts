/** The behaviour of clients besides sending: they leave after some time, and retry after a drop, within a budget. */
import { put } from '../../base/put.js';
import { type RetryBudget, retryBudget } from '../../client/index.js';
import { type Drop, explainDrop, type FlowKey } from '../../index.js';
import { type Random, type Sampler, samplerOf } from '../random/distributions.js';
import type { RetrySpec, TrafficSpec } from '../traffic/traffic-spec.js';

/** The clients of one source. */
export class Clients {
  readonly spec: TrafficSpec;
  /** Index of the spec among the traffic of the scenario. */
  readonly traffic: number;
  readonly tellsGateway: boolean;
  /** True when a request's client can leave in a way that the gateway notices. */
  readonly mayLeave: boolean;
  /** How long they wait for the first token, and for the last; undefined: for ever. */
  readonly patience: Sampler | undefined;
  readonly deadline: Sampler | undefined;
  private readonly keys = new Map<string, FlowKey>();
  private lastKey: FlowKey | undefined = undefined;
  private readonly retries: RetrySpec | undefined;
  private readonly budget: RetryBudget | undefined;
  private readonly random: Random;

  constructor(spec: TrafficSpec, traffic: number, random: (name: string) => Random) {
    const { patience, deadline, tellsGateway = true, retries } = spec.client ?? {};
    this.spec = spec;
    this.traffic = traffic;
    this.patience = patience === undefined ? undefined : samplerOf(patience, random('patience'));
    this.deadline = deadline === undefined ? undefined : samplerOf(deadline, random('deadline'));
    this.tellsGateway = tellsGateway;
    this.mayLeave = (patience !== undefined || deadline !== undefined) && tellsGateway;
    this.retries = retries;
    this.budget = retries && retryBudget({ ratio: retries.budget ?? 0.1, minPerSecond: 0 });
    this.random = random('retries');
  }

  /** One object for all requests of a flow, which measures find their groups by. */
  keyOf(fairnessId: string, priority: number): FlowKey {
    const { lastKey } = this;
    if (lastKey !== undefined && lastKey.fairnessId === fairnessId && lastKey.priority === priority) return lastKey;
    const name = `${priority}/${fairnessId}`;
    this.lastKey = this.keys.get(name) ?? put(this.keys, name, { fairnessId, priority });
    return this.lastKey;
  }

  requested(): void {
    this.budget?.requested();
  }

  /** The pause before the next attempt after `attempts` of them, ms; undefined when there is none. */
  retryDelayMs(drop: Drop, attempts: number, nowMs: number): number | undefined {
    if (this.retries === undefined || this.budget === undefined || drop.reason === 'cancelled') return undefined;
    const { max = 2, initial = 500, longest = 8000, obeysRetryAfter = true } = this.retries;
    if (attempts > max || !this.budget.tryRetry(nowMs)) return undefined;
    const pauseMs = this.random() * Math.min(longest, initial * 2 ** (attempts - 1));
    const askedMs = obeysRetryAfter ? (explainDrop(drop).retryAfterSeconds ?? 0) * 1000 : 0;
    return Math.max(pauseMs, askedMs);
  }
}
