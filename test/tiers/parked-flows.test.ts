import { expect, it } from 'vitest';
import { Flow } from '../../src/tiers/flow.js';
import { type Park, ParkedFlows } from '../../src/tiers/parked-flows.js';
import type { PriorityBand } from '../../src/tiers/priority-band.js';

function flowWith(name: string, waiting: number): Flow {
  const flow = new Flow(name, name, {} as PriorityBand, undefined);
  flow.waiting = waiting;
  return flow;
}

it('parked flows stand in the order in which they were parked, and in what they wait for', () => {
  const parked = new ParkedFlows();
  const [cap, other]: Park[] = [{ flows: new Set() }, { flows: new Set() }];
  const [a, b, c] = [flowWith('a', 2), flowWith('b', 3), flowWith('c', 5)];
  parked.park(a, cap!);
  parked.park(b, other!);
  parked.park(c, cap!);
  expect([parked.flowCount, parked.waiting, [...parked.flows()]]).toEqual([3, 10, [a, b, c]]);
  expect([[...cap!.flows], [...other!.flows]]).toEqual([[a, c], [b]]);
  expect([a.parkedFor, b.parkedFor]).toEqual([cap, other]);
});

it('a flow that is let go is in neither any more', () => {
  const parked = new ParkedFlows();
  const cap: Park = { flows: new Set() };
  const [a, b] = [flowWith('a', 2), flowWith('b', 3)];
  parked.park(a, cap);
  parked.park(b, cap);
  parked.unpark(a);
  expect([parked.flowCount, parked.waiting, [...parked.flows()], [...cap.flows], a.parkedFor]).toEqual([
    1,
    3,
    [b],
    [b],
    undefined,
  ]);
  parked.unpark(b);
  expect([parked.flowCount, parked.waiting, cap.flows.size]).toEqual([0, 0, 0]);
});
