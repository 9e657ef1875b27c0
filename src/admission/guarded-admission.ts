/** The admission policy with its faults contained. One that wants to hear it is told each end of what it admitted. */
import type { PluginErrorSink } from '../base/faults/plugin-errors.js';
import { PluginGuard } from '../base/faults/plugin-guard.js';
import { isSamePlugin } from '../base/plugin-origin.js';
import type { PoolView } from '../endpoints/endpoint.js';
import type { Gate } from '../gate/gate.js';
import type { Ending } from '../tiers/2-fairness/fairness-policy.js';
import type { Usage } from '../tiers/views.js';
import type { AdmissionKey, AdmissionPolicy, AdmissionView, Rejection } from './admission-policy.js';

/** An admitted request. */
export interface AdmittedItem extends AdmissionKey {
  readonly request: unknown;
  /** The policy that is told of its end; cleared afterwards. */
  admittedBy: AdmissionPolicy | undefined;
}

export class GuardedAdmission {
  /** True once a policy had to be told of the end of what it admitted. */
  hearsEnds = false;
  policy: AdmissionPolicy | undefined = undefined;
  /** Hears of the last request's end; undefined when it does not want to, or failed, and so the request came in. */
  admittedBy: AdmissionPolicy | undefined = undefined;
  /** True when the policy in use is told of ends. */
  private isTold = false;
  /** Of one decision; made once and used for every decision. */
  private readonly view: { -readonly [K in keyof AdmissionView]: AdmissionView[K] };
  private saturation: number | undefined = undefined;
  private readonly errors: PluginErrorSink;

  constructor(policy: AdmissionPolicy | undefined, pool: PoolView, gate: Gate, errors: PluginErrorSink) {
    this.errors = errors;
    this.configure(policy);
    const saturation = (): number => (this.saturation ??= gate.measure(this.view.nowMs));
    this.view = { nowMs: 0, waiting: 0, pool, saturation };
  }

  /** Uses this policy from now on. If a file asks for an equal one, the policy in use stays, with its counts. */
  configure(policy: AdmissionPolicy | undefined): void {
    if (policy !== undefined && this.policy !== undefined && isSamePlugin(this.policy, policy)) return;
    this.policy = policy;
    this.isTold = policy !== undefined && this.guardOf(policy).has(policy, 'released');
    if (this.isTold) this.hearsEnds = true;
  }

  /** Undefined when the request may come in; a policy that fails admits. */
  rejection(request: unknown, key: AdmissionKey, nowMs: number, waiting: number): Rejection | undefined {
    const { policy } = this;
    this.admittedBy = undefined;
    if (policy === undefined) return undefined;
    this.view.nowMs = nowMs;
    this.view.waiting = waiting;
    this.saturation = undefined;
    try {
      const answer: unknown = policy.admit(request, key, this.view);
      if (answer === 'admit') {
        if (this.isTold) this.admittedBy = policy;
        return undefined;
      }
      if (typeof answer === 'object' && answer !== null) return this.read(answer, policy);
      this.guardOf(policy).violated('admit must return "admit" or an object with a reason', answer);
    } catch (error) {
      this.guardOf(policy).failed(error);
    }
    return undefined;
  }

  dropped(item: AdmittedItem, nowMs: number): void {
    this.tellEnd(item, undefined, nowMs);
  }

  ended({ item, usage }: { readonly item: AdmittedItem; readonly usage: Usage }, _ending: Ending, nowMs: number): void {
    this.tellEnd(item, usage, nowMs);
  }

  /** Tells the policy that admitted the request of its end, once. */
  private tellEnd(item: AdmittedItem, usage: Usage | undefined, nowMs: number): void {
    const policy = item.admittedBy;
    if (policy === undefined) return;
    item.admittedBy = undefined;
    this.guardOf(policy).tell(policy, 'released', item.request, item, usage, nowMs);
  }

  /** A copy of a rejection, so that each field is read once; undefined when a field is wrong. */
  private read(answer: Partial<Rejection>, from: AdmissionPolicy): Rejection | undefined {
    const { reason, policy = from.type, cause, retryAfterMs } = answer;
    const isTime = retryAfterMs === undefined || (typeof retryAfterMs === 'number' && retryAfterMs >= 0);
    if (typeof reason === 'string' && typeof policy === 'string' && causes.includes(cause) && isTime)
      return { reason, policy, cause, retryAfterMs };
    const guard = this.guardOf(from);
    const rule =
      'a rejection must have a reason, and may have a policy, a cause ("saturated", "overloaded" or "budget") and a retryAfterMs from 0 up';
    guard.violated(rule, answer);
    for (const field of [reason, policy, cause, retryAfterMs]) guard.ignored(field);
    return undefined;
  }

  /** The guard is made when it is needed, because the policy of an ended request may have been replaced since. */
  private guardOf(policy: AdmissionPolicy): PluginGuard {
    return new PluginGuard('admission', policy, this.errors);
  }
}

const causes: readonly unknown[] = [undefined, 'saturated', 'overloaded', 'budget'];
