/**
 * Endpoints judged with the request to come: `countIncoming` of the concurrency detector, alone and in a composite by
 * stages.
 */
import { expect } from 'vitest';
import type { Stage } from '../../../src/endpoints/endpoint.js';
import {
  concurrencyDetector,
  type EndpointPicker,
  type EndpointView,
  maxOf,
  roleLabel,
  type SaturationDetector,
} from '../../../src/index.js';
import { constraintsIn } from '../../support/constraints.js';
import { fakeItem } from '../../support/fake-item.js';
import { Rig } from '../support/rig.js';
import { type Runners, runner } from '../support/runner.js';

interface Loads {
  /** Tokens in flight at each endpoint. */
  loadTokens: readonly number[];
  incomingTokens: number;
}

/** A pool with this load: one running request at each endpoint that has any. */
function loadedRig(loadTokens: readonly number[], role: string): Rig {
  const next: EndpointPicker = {
    type: 'first-empty',
    pick: (endpoints) =>
      endpoints.find((endpoint, index) => endpoint.inFlightTokens === 0 && (loadTokens[index] ?? 0) > 0),
  };
  const rig = new Rig({ endpointPicker: next }, { endpoints: 0 });
  for (const index of loadTokens.keys()) rig.pool.add(`endpoint-${index}`, { labels: { [roleLabel]: role } });
  rig.gate.open();
  for (const tokens of loadTokens) if (tokens > 0) rig.enqueue({ tokens });
  expect(rig.pool.endpoints.map(({ inFlightTokens }) => inFlightTokens)).toEqual(loadTokens);
  return rig;
}

function byTokens(limitTokens: number, countIncoming: boolean): SaturationDetector {
  return concurrencyDetector({ concurrencyMode: 'tokens', maxTokenConcurrency: limitTokens, countIncoming });
}

function roomyAt(detector: SaturationDetector, { endpoints }: Rig['pool'], tokens: number): readonly EndpointView[] {
  const below = detector.filter?.(endpoints, 0) ?? endpoints;
  return constraintsIn([detector]).withRoomFor(below, fakeItem({ tokens }), undefined, 0);
}

interface Projected extends Loads {
  limitTokens: number;
  /** Whether all endpoints stand for none: without `countIncoming` that is `headroom: 'preferred'`. */
  failOpen: boolean;
}

interface Staged extends Loads {
  children: readonly { stages: readonly Stage[]; limitTokens: number }[];
  /** Empty: not told; the endpoints serve both. */
  stage: Stage | '';
}

export const incomingRunners: Runners = {
  'detector.filterProjected': runner<Projected, { admissible: number; dispatched: boolean }>(
    { input: ['limitTokens', 'loadTokens', 'incomingTokens', 'failOpen'], expect: ['admissible', 'dispatched'] },
    ({ input: { limitTokens, loadTokens, incomingTokens, failOpen }, expect: expected }) => {
      const rig = loadedRig(loadTokens, 'decode');
      const roomy = roomyAt(byTokens(limitTokens, true), rig.pool, incomingTokens).length;
      rig.flow.reconfigure({ saturationDetector: byTokens(limitTokens, !failOpen), endpointPicker: undefined });
      const dispatched = rig.enqueue({ tokens: incomingTokens }).state === 'Dispatched';
      expect({ admissible: failOpen && roomy === 0 ? loadTokens.length : roomy, dispatched }).toMatchObject(expected);
    },
  ),

  'detector.filterProjectedStaged': runner<Staged, { admissible: number }>(
    { input: ['children', 'loadTokens', 'incomingTokens', 'stage'], expect: ['admissible'] },
    ({ input: { children, loadTokens, incomingTokens, stage }, expect: expected }) => {
      const rig = loadedRig(loadTokens, stage === '' ? 'prefill-decode' : stage);
      const detector = maxOf(
        ...children.map(({ stages, limitTokens }) => ({ stages, detector: byTokens(limitTokens, true) })),
      );
      expect(roomyAt(detector, rig.pool, incomingTokens)).toHaveLength(expected.admissible);
    },
  ),
};
