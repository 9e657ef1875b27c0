import { expect, it } from 'vitest';
import { detectorFor } from '../../../src/gate/parts.js';
import { CountingClock } from '../../support/clocks.js';
import { key, leaseOf, makeFlow, request } from '../../support/flow.js';

it('a gate that announces nothing is looked at again, whenever a request begins to wait', async () => {
  const clock = new CountingClock();
  let isFull = true;
  const { flow } = makeFlow({ clock, saturationDetector: () => (isFull ? 1 : 0), defaultRequestTtl: '10s' });
  for (let i = 0; i < 3; i++) {
    isFull = true;
    const outcome = flow.enqueue(request, key());
    isFull = false;
    clock.advance(10);
    expect((await outcome).type).toBe('Dispatched');
    expect(clock.pendingTimers).toBe(0);
  }
});

it('goes on to look again when figures are read after time has opened the gate', async () => {
  const { flow, clock } = makeFlow({
    saturationDetector: detectorFor({
      type: 'fading',
      withRoomFor: (endpoints) => endpoints,
      fullness: (_, nowMs) => (nowMs < 100 ? 1 : 0),
    }),
    gate: { recheckIntervalMs: 30 },
  });
  const outcome = flow.enqueue(request, key());
  clock.advance(105);
  expect(flow.stats().waiting).toBe(1);
  clock.advance(15);
  leaseOf(await outcome);
});
