/** Requests and flows as policies see them, made of figures. */
import type { FlowView, ItemView } from '../../src/index.js';

export function fakeItem(figures: Partial<ItemView> = {}): ItemView {
  return {
    request: { byteSize: 1 },
    fairnessId: 'a',
    priority: 0,
    byteSize: 1,
    tokens: 0,
    sequence: 0,
    receivedAtMs: 0,
    enqueuedAtMs: 0,
    ttlMs: Number.POSITIVE_INFINITY,
    ttftDeadlineAtMs: Number.POSITIVE_INFINITY,
    ...figures,
  };
}

export function fakeFlow(fairnessId: string, figures: Partial<FlowView> = {}): FlowView {
  return { fairnessId, priority: 0, weight: 1, waiting: 0, waitingBytes: 0, head: undefined, ...figures };
}
