import { expect, it } from 'vitest';
import { roundRobin } from '../../src/index.js';
import { makeFlow, request } from '../support/flow.js';

it('maxFlows keeps a million fairness IDs that pass through from costing more than maxFlows', () => {
  const { flow } = makeFlow({
    saturationDetector: () => 0,
    maxFlows: 1000,
    bands: [{ priority: 0, fairness: roundRobin() }],
  });
  for (let i = 0; i < 1_000_000; i++) flow.tryEnqueue(request, { fairnessId: `tenant-${i}` });
  expect(flow.stats()).toMatchObject({ flows: 1000, dispatched: 1_000_000 });
});
