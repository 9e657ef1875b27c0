/** What tests of the controller share: a controller on a manual clock, and the two kinds of outcomes. */
import {
  concurrencyDetector,
  type Drop,
  FlowController,
  type FlowControllerOptions,
  type FlowEvents,
  type FlowKey,
  type FlowRequest,
  type Lease,
  type Outcome,
  type SaturationDetector,
} from '../../src/index.js';
import { ManualClock } from '../../src/testing/index.js';

/** A controller that runs one request at a time unless a detector or constraints are given. */
export function makeFlow(options: Partial<FlowControllerOptions> = {}): { flow: FlowController; clock: ManualClock } {
  const clock = new ManualClock();
  const flow = new FlowController({
    saturationDetector: options.constraints === undefined ? concurrencyDetector({ maxConcurrency: 1 }) : undefined,
    clock,
    ...options,
  });
  return { flow, clock };
}

export function leaseOf(outcome: Outcome | undefined): Lease {
  if (outcome?.type !== 'Dispatched') throw new Error(`expected a dispatch, got ${outcome?.type} (${outcome?.reason})`);
  return outcome.lease;
}

export function dropOf(outcome: Outcome | undefined): Drop {
  if (outcome === undefined || outcome.type === 'Dispatched') throw new Error(`expected a drop, got ${outcome?.type}`);
  return outcome;
}

export const request: FlowRequest = { byteSize: 10 };

export function key(fairnessId = 'a', priority = 0): FlowKey {
  return { fairnessId, priority };
}

/** A dispatch that needs no waiting. */
export function runNow(flow: FlowController, { fairnessId = 'running', priority = 0 }: Partial<FlowKey> = {}): Lease {
  return leaseOf(flow.tryEnqueue(request, { fairnessId, priority }));
}

/** Lets every promise that is settled by now run its continuations. */
export async function turns(count = 5): Promise<void> {
  for (let i = 0; i < count; i++) await Promise.resolve();
}

/** A detector whose reading the test sets. Silent unless `announces`. */
export interface Dial extends SaturationDetector {
  value: number;
  /** How often it was asked. */
  reads: number;
  /** Sets the value and tells whoever subscribed. */
  turnTo(value: number): void;
  readonly subscribers: number;
}

export function dial(value: number, announces = false): Dial {
  const listeners = new Set<() => void>();
  const detector: Dial = {
    type: 'dial',
    value,
    reads: 0,
    saturation() {
      detector.reads++;
      return detector.value;
    },
    turnTo(next) {
      detector.value = next;
      for (const listener of listeners) listener();
    },
    get subscribers() {
      return listeners.size;
    },
  };
  if (announces) {
    detector.subscribe = (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    };
  }
  return detector;
}

/** The payloads of one event, in order. */
export function record<E extends keyof FlowEvents>(flow: FlowController, event: E): FlowEvents[E][] {
  const payloads: FlowEvents[E][] = [];
  flow.on(event, (payload) => payloads.push(payload as FlowEvents[E]));
  return payloads;
}

/** The fairness IDs of dispatches, in order, those that came before excluded. */
export function dispatchOrder(flow: FlowController): string[] {
  const order: string[] = [];
  flow.on('dispatched', ({ item }) => order.push(item.fairnessId));
  return order;
}

/** An AbortController whose signal counts the listeners put on it. */
export function countedAbort(): {
  controller: AbortController;
  signal: AbortSignal;
  added: () => number;
  live: () => number;
} {
  const controller = new AbortController();
  const { signal } = controller;
  const live = new Set<unknown>();
  let added = 0;
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  signal.addEventListener = (type: string, listener: Parameters<typeof add>[1]) => {
    added++;
    live.add(listener);
    add(type, listener);
  };
  signal.removeEventListener = (type: string, listener: Parameters<typeof add>[1]) => {
    live.delete(listener);
    remove(type, listener);
  };
  return { controller, signal, added: () => added, live: () => live.size };
}
