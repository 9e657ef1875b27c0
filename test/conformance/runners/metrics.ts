/** Metrics, as prom-client prints them for a controller. */
import { expect } from 'vitest';
import { BoundedLabel } from '../../../src/base/bounded-label.js';
import { Rig } from '../support/rig.js';
import { type Runners, runner, unknownWord } from '../support/runner.js';
import { Series } from '../support/series.js';

const flowIdleTimeout = 1000;

interface Occupancy {
  bandMaxRequests: number;
  queued: number;
  globalMaxRequests?: number;
  globalMaxBytes?: number;
}

/** Null: there is no such series. */
interface UtilizationResult {
  bandRequestsGreaterThan?: number;
  globalRequestsGreaterThan?: number;
  globalRequests?: number | null;
  globalBytes?: number | null;
  globalBytesGreaterThan?: number;
}

export const metricsRunners: Runners = {
  'metrics.boundedLabel': runner<
    { cap: number; values: readonly string[]; pinned?: readonly string[] },
    { labels: readonly string[] }
  >(
    { input: ['cap', 'values', 'pinned'], expect: ['labels'] },
    ({ input: { cap, values, pinned }, expect: { labels } }) => {
      const label = new BoundedLabel(cap, pinned);
      expect(values.map((value) => label.of(value))).toEqual(labels);
    },
  ),
  'metrics.seriesCount': runner<{ cap: number; distinct: number }, { series: number }>(
    { input: ['cap', 'distinct'], expect: ['series'] },
    async ({ input: { cap, distinct }, expect: expected }) => {
      const rig = new Rig();
      rig.gate.open();
      const series = new Series(rig, { maxFairnessIds: cap });
      for (let index = 0; index < distinct; index++) rig.enqueue({ fairnessId: `tenant-${index}` });
      expect(await series.of('request_queue_duration_seconds')).toHaveLength(expected.series);
    },
  ),
  'metrics.deleteFlow': runner<
    {
      series: readonly (readonly [fairnessId: string, priority: string, outcome: string])[];
      delete: readonly [string, string];
    },
    { remaining: number }
  >({ input: ['series', 'delete'], expect: ['remaining'] }, async (vector) => {
    const { series: wanted, delete: deleted } = vector.input;
    const rig = new Rig({ flowIdleTimeout, bandIdleTimeout: flowIdleTimeout, defaultRequestTtl: 0 });
    const series = new Series(rig);
    for (const [fairnessId, priority, outcome] of wanted) {
      const ticket = rig.enqueue({ fairnessId, priority: Number(priority) });
      if (outcome === 'Dispatched') rig.gate.open(1);
      else if (outcome === 'Rejected') ticket.abort.abort();
      else throw unknownWord(vector, outcome);
    }
    expect(await series.of('request_queue_duration_seconds')).toHaveLength(wanted.length);
    // A flow is deleted when it has been idle; the others have something waiting.
    for (const [fairnessId, priority] of wanted) {
      if (fairnessId !== deleted[0] || priority !== deleted[1]) rig.enqueue({ fairnessId, priority: Number(priority) });
    }
    rig.clock.advance(flowIdleTimeout);
    rig.flow.stats();
    expect(await series.of('request_queue_duration_seconds')).toHaveLength(vector.expect.remaining);
  }),
  'metrics.utilization': runner<Occupancy, UtilizationResult>(
    {
      input: ['bandMaxRequests', 'queued', 'globalMaxRequests', 'globalMaxBytes'],
      expect: [
        'bandRequestsGreaterThan',
        'globalRequestsGreaterThan',
        'globalRequests',
        'globalBytes',
        'globalBytesGreaterThan',
      ],
    },
    async ({ input: { bandMaxRequests, queued, globalMaxRequests, globalMaxBytes }, expect: expected }) => {
      const limits = { maxRequests: globalMaxRequests ?? Infinity, maxBytes: globalMaxBytes ?? Infinity };
      const rig = new Rig({ limits, bands: [{ priority: 0, limits: { maxRequests: bandMaxRequests } }] });
      const series = new Series(rig);
      rig.enqueueMany(queued, { byteSize: 1 });
      const figureOf = async (name: string): Promise<number | null> => (await series.of(name))[0]?.value ?? null;
      const [band, requests, bytes] = [
        await figureOf('capacity_utilization_requests'),
        await figureOf('global_capacity_utilization_requests'),
        await figureOf('global_capacity_utilization_bytes'),
      ];
      const { globalRequests, globalBytes } = expected;
      if (expected.bandRequestsGreaterThan !== undefined)
        expect(band).toBeGreaterThan(expected.bandRequestsGreaterThan);
      if (expected.globalRequestsGreaterThan !== undefined)
        expect(requests).toBeGreaterThan(expected.globalRequestsGreaterThan);
      if (expected.globalBytesGreaterThan !== undefined) expect(bytes).toBeGreaterThan(expected.globalBytesGreaterThan);
      if (globalRequests !== undefined) expect(requests).toBe(globalRequests);
      if (globalBytes !== undefined) expect(bytes).toBe(globalBytes);
    },
  ),
};
