/** The admission policy as the controller asks it: its faults are contained, and it hears of the end of every request that it admitted. */
import type { PluginErrorSink } from '../base/faults/plugin-errors.js';
import type { PoolView } from '../endpoints/endpoint.js';
import type { Gate } from '../gate/gate.js';
import type { Usage } from '../tiers/views.js';
import type { AdmissionKey, AdmissionPolicy, AdmissionView, Refusal } from './admission-policy.js';

/** An admitted request. */
export interface AdmittedItem extends AdmissionKey {
  readonly request: unknown;
  /** The policy that hears of its end; cleared when it has heard. */
  admittedBy: AdmissionPolicy | undefined;
}

/** The view of one decision; made once and used for every decision. */
class DecisionView implements AdmissionView {
  nowMs = 0;
  waiting = 0;
  readonly pool: PoolView;
  private readonly gate: Gate;
  private reading: number | undefined = undefined;

  constructor(pool: PoolView, gate: Gate) {
    this.pool = pool;
    this.gate = gate;
  }

  begin(nowMs: number, waiting: number): void {
    this.nowMs = nowMs;
    this.waiting = waiting;
    this.reading = undefined;
  }

  saturation(): number {
    this.reading ??= this.gate.measure(this.nowMs);
    return this.reading;
  }
}

export class GuardedAdmission {
  /** True once a policy hears of the end of the requests that it admitted. */
  hearsEnds = false;
  policy: AdmissionPolicy | undefined = undefined;
  /** The policy that admitted the last request; undefined when the policy failed and the request was admitted for that. */
  admittedBy: AdmissionPolicy | undefined = undefined;
  private readonly view: DecisionView;
  private readonly errors: PluginErrorSink;

  constructor(policy: AdmissionPolicy | undefined, pool: PoolView, gate: Gate, errors: PluginErrorSink) {
    this.configure(policy);
    this.view = new DecisionView(pool, gate);
    this.errors = errors;
  }

  /** Asks this policy from now on. */
  configure(policy: AdmissionPolicy | undefined): void {
    this.policy = policy;
    if (policy?.released !== undefined) this.hearsEnds = true;
  }

  /** Undefined when the request may come in; a policy that fails admits. */
  refusal(request: unknown, key: AdmissionKey, nowMs: number, waiting: number): Refusal | undefined {
    const { policy } = this;
    this.admittedBy = undefined;
    if (policy === undefined) return undefined;
    this.view.begin(nowMs, waiting);
    try {
      const answer: unknown = policy.admit(request, key, this.view);
      if (answer === 'admit') {
        this.admittedBy = policy;
        return undefined;
      }
      if (isRefusal(answer)) return answer;
      this.failed(policy, new TypeError('admit must return "admit" or an object with a reason'));
    } catch (error) {
      this.failed(policy, error);
    }
    return undefined;
  }

  /** Tells the policy that admitted the request of its end, once. */
  ended(item: AdmittedItem, usage: Usage | undefined): void {
    const policy = item.admittedBy;
    if (policy === undefined) return;
    item.admittedBy = undefined;
    try {
      policy.released?.(item.request, item, usage);
    } catch (error) {
      this.failed(policy, error);
    }
  }

  private failed({ type }: AdmissionPolicy, error: unknown): void {
    this.errors.pluginFailed('admission', type, error);
  }
}

function isRefusal(answer: unknown): answer is Refusal {
  return typeof answer === 'object' && answer !== null && 'reason' in answer && typeof answer.reason === 'string';
}
