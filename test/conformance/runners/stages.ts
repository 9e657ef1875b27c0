/** Disaggregated serving: endpoints by stage, the fuller stage, and detectors that judge one stage only. */
import { expect } from 'vitest';
import type { Stage } from '../../../src/endpoints/endpoint.js';
import { partitionByRole } from '../../../src/gate/detectors/composite/stage-aware.js';
import {
  byStage,
  type EndpointView,
  maxOf,
  type PoolView,
  roleLabel,
  type SaturationDetector,
} from '../../../src/index.js';
import { Rig } from '../support/rig.js';
import { expectNumber, type Runners, runner, unknownWord } from '../support/runner.js';

/** Null: without a label. A dash: no endpoint. */
type Roles = readonly (string | null)[];

function endpointOf(role: string | null, index: number): EndpointView {
  return {
    id: String(index),
    labels: role === null ? {} : { [roleLabel]: role },
    weight: 1,
    overloadedUntilMs: 0,
    metrics: undefined,
    inFlightRequests: 0,
    inFlightTokens: 0,
    unsampledRequests: 0,
    dispatchedRequests: 0,
  };
}

function poolOf(roles: Roles): PoolView {
  return { endpoints: roles.filter((role) => role !== '-').map(endpointOf), inFlightRequests: 0, inFlightTokens: 0 };
}

function constant(type: string, saturation: number): SaturationDetector {
  return { type, saturation: () => saturation };
}

interface Gate {
  stageSaturation?: Readonly<Record<Stage, number>>;
  roles?: Roles;
}

interface Composite {
  children: readonly { name: string; saturation: number; stages?: readonly Stage[] }[];
  stage: Stage | '';
}

export const stageRunners: Runners = {
  'stages.partition': runner<{ roles: Roles }, Readonly<Record<Stage | 'interleaved', number>>>(
    { input: ['roles'], expect: ['prefill', 'decode', 'interleaved'] },
    ({ input, expect: expected }) => {
      const { prefill, decode } = partitionByRole(poolOf(input.roles).endpoints);
      const interleaved = prefill.filter((endpoint) => decode.includes(endpoint)).length;
      expect({ prefill: prefill.length - interleaved, decode: decode.length - interleaved, interleaved }).toEqual(
        expected,
      );
    },
  ),

  'stages.gate': runner<
    Gate,
    { dispatched?: boolean; effective?: number; detectorCalls?: readonly (readonly string[])[] }
  >({ input: ['stageSaturation', 'roles'], expect: ['dispatched', 'effective', 'detectorCalls'] }, (vector) => {
    const { stageSaturation, roles = ['prefill', 'decode'] } = vector.input;
    const calls: string[][] = [];
    const saturationDetector = byStage({
      type: 'spy',
      saturation({ endpoints, stage }) {
        calls.push(endpoints.map(({ labels }) => labels[roleLabel] ?? ''));
        if (stage === undefined) throw unknownWord(vector, stage);
        return stageSaturation?.[stage] ?? 0;
      },
    });
    const rig = new Rig({ saturationDetector }, { endpoints: 0 });
    for (const [index, role] of roles.entries())
      rig.pool.add(`endpoint-${index}`, { labels: { [roleLabel]: role ?? '' } });
    const { state } = rig.enqueue();
    const { dispatched, effective, detectorCalls } = vector.expect;
    if (dispatched !== undefined) expect(state).toBe(dispatched ? 'Dispatched' : 'queued');
    if (effective !== undefined) expect(rig.flow.stats().saturation).toBe(effective);
    // A new look asks again.
    if (detectorCalls !== undefined) expect(calls.slice(-detectorCalls.length)).toEqual(detectorCalls);
  }),

  'detector.composite': runner<Composite, { saturation: number }>(
    { input: ['children', 'stage'], expect: ['saturation'] },
    ({ input: { children, stage }, expect: expected, tolerance }) => {
      const detector = maxOf(
        ...children.map(({ name, saturation, stages }) => ({ name, stages, detector: constant(name, saturation) })),
      );
      const pool = poolOf(['decode']);
      expectNumber(detector.saturation(stage === '' ? pool : { ...pool, stage }, 0), expected.saturation, tolerance);
    },
  ),

  'detector.compositeRole': runner<{ type: string }, { isFilter: boolean }>(
    { input: ['type'], expect: ['isFilter'] },
    (vector) => {
      if (vector.input.type !== 'max-saturation-detector') throw unknownWord(vector, vector.input.type);
      expect(maxOf(constant('child', 0)).filter !== undefined).toBe(vector.expect.isFilter);
    },
  ),
};
