import { expect, it } from 'vitest';
import { CountingClock } from '../../support/clocks.js';
import { key, makeFlow, request } from '../../support/flow.js';

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
