import { expect, it } from 'vitest';
import { Flow } from '../../src/tiers/flow.js';
import type { PriorityBand } from '../../src/tiers/priority-band.js';

it('a flow of a band with one queue for all has no first request of its own, and stands in no list at first', () => {
  const flow = new Flow('a', 'a', { priority: 3 } as PriorityBand, undefined);
  expect([flow.head, flow.isIdle, flow.priority, flow.weight]).toEqual([undefined, false, 3, 1]);
});
