/** Budgets that are shared by controllers of which each lives for a while. */
import { expect, it } from 'vitest';
import { engineOf } from '../../src/core/inspect/engine-of.js';
import { FlowController } from '../../src/index.js';
import { type Budgets, budgets } from '../../src/spending/index.js';
import { ManualClock } from '../../src/testing/index.js';
import { collectGarbage } from '../support/collect-garbage.js';
import { key, leaseOf, turns } from '../support/flow.js';

const made = (): Budgets => budgets({ budgets: [{ by: 'flow', limits: [{ unit: 'tokens', limit: 2, per: '1h' }] }] });

function controller(shared: Budgets, clock: ManualClock): FlowController {
  return new FlowController({ maxConcurrency: 9, constraints: [shared], clock });
}

it('keep no controller that has closed, nor one that its host has forgotten', async () => {
  const shared = made();
  const clock = new ManualClock();
  const gone: WeakRef<object>[] = [];
  for (let i = 0; i < 20; i++) {
    const flow = controller(shared, clock);
    leaseOf(flow.tryEnqueue({ byteSize: 1, tokens: 1 }, key(`tenant ${i}`))).release();
    if (i % 2 === 0) await flow.close();
    else flow.reconfigure({ constraints: [] });
    gone.push(new WeakRef(engineOf(flow)!.backlog));
  }
  await turns();
  // The promise of the last one, and what V8 has on its stack, may keep one.
  await expect
    .poll(() => {
      collectGarbage();
      return gone.filter((backlog) => backlog.deref() !== undefined).length;
    })
    .toBeLessThanOrEqual(1);
});

it.each([false, true])('wake what waits in each of their controllers; reconfigured: %s', async (isReconfigured) => {
  const shared = made();
  const clock = new ManualClock();
  const [a, b] = [controller(shared, clock), controller(shared, clock)];
  const first = leaseOf(a.tryEnqueue({ byteSize: 1, tokens: 1 }, key('acme')));
  const second = leaseOf(a.tryEnqueue({ byteSize: 1, tokens: 1 }, key('acme')));
  collectGarbage();
  const waiting = b.enqueue({ byteSize: 1, tokens: 1 }, key('acme'));
  if (isReconfigured) b.reconfigure({ maxFlows: 7 });
  collectGarbage();
  first.unsent();
  first.release();
  leaseOf(await waiting).release();
  second.release();
});
