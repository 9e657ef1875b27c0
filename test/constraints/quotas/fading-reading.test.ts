/** The reading of a quota falls by time alone. Where it has closed the gate, requests go when it has fallen. */
import { expect, it } from 'vitest';
import { detectorFor } from '../../../src/gate/parts.js';
import {
  type FlowControllerOptions,
  meanOf,
  quotaDetector,
  staticUsageLimit,
  withHysteresis,
} from '../../../src/index.js';
import { dial, key, makeFlow, request, turns } from '../../support/flow.js';

const quota = () => quotaDetector({ groups: [{ quotas: [{ unit: 'requests', limit: 10, per: '10s' }] }] });

const closing: Record<string, Partial<FlowControllerOptions>> = {
  'a ceiling': { constraints: [quota()], usageLimitPolicy: staticUsageLimit({ threshold: 0.5 }) },
  'the level of closing': { constraints: [quota()], gate: { closeAt: 0.5 } },
  'the level of opening': { constraints: [quota()], gate: { closeAt: 0.8, openAt: 0.4 } },
  'a mean': { saturationDetector: meanOf(detectorFor(quota()), dial(1.2, true)) },
  hysteresis: { saturationDetector: withHysteresis(detectorFor(quota()), { closeAt: 0.8, openAt: 0.4 }) },
};

it.each(Object.keys(closing))('a gate that %s closed opens with time', async (name) => {
  const { flow, clock } = makeFlow({ ...closing[name], defaultRequestTtl: 0 });
  let went = 0;
  flow.on('dispatched', () => went++);
  for (let i = 0; i < 10; i++) void flow.enqueue(request, key());
  await turns();
  expect(went).toBeLessThan(10);
  clock.advance(60_000);
  await turns();
  expect(went).toBe(10);
});
