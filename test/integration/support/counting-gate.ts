/** A controller whose leases are counted: given out, and how often each was released. */

import type { AdapterGate, HttpFlowRequest } from '../../../src/adapters/node/index.js';
import {
  concurrencyDetector,
  FlowController,
  type FlowControllerOptions,
  type FlowKey,
  type Outcome,
} from '../../../src/index.js';

export interface CountingGate extends AdapterGate<HttpFlowRequest<unknown>> {
  readonly flow: FlowController;
  /** How often `release` was called, by lease. */
  readonly releases: readonly number[];
  /** The keys asked for, in order. */
  readonly keys: readonly FlowKey[];
}

export function countingGate(maxConcurrency: number, options: Partial<FlowControllerOptions> = {}): CountingGate {
  const flow = new FlowController({ saturationDetector: concurrencyDetector({ maxConcurrency }), ...options });
  const releases: number[] = [];
  const keys: FlowKey[] = [];

  function counted(outcome: Outcome): Outcome {
    if (outcome.type !== 'Dispatched') return outcome;
    const { lease } = outcome;
    const index = releases.push(0) - 1;
    const release = lease.release.bind(lease);
    lease.release = () => {
      releases[index] = releases[index]! + 1;
      release();
    };
    return outcome;
  }

  return {
    flow,
    releases,
    keys,
    enter(request, key, waiting) {
      keys.push(key);
      const entered = flow.enter(request, key, waiting);
      return entered instanceof Promise ? entered.then(counted) : counted(entered);
    },
    enqueue: (request, key) => flow.enqueue(request, key).then(counted),
  };
}
