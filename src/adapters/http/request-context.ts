/** The content of the option `context` while a request runs. Invariant: it makes no signal that nobody asks for. */
import type { Lease } from '../../index.js';
import type { PlacementHints, RequestContext } from './adapter-options.js';

export class LeasedContext implements RequestContext {
  readonly fairnessId: string;
  readonly priority: number;
  readonly affinityKey: string | undefined;
  readonly sessionId: string | undefined;
  readonly endpointSubset: readonly string[] | string | undefined;
  private readonly lease: Lease;

  constructor(lease: Lease, { affinityKey, sessionId, endpointSubset }: PlacementHints) {
    this.fairnessId = lease.fairnessId;
    this.priority = lease.priority;
    this.affinityKey = affinityKey;
    this.sessionId = sessionId;
    this.endpointSubset = endpointSubset;
    this.lease = lease;
  }

  get signal(): AbortSignal {
    return this.lease.signal;
  }
}
