/** Requests as policies see them, made of figures. */
import type { ItemView } from '../../src/index.js';

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
