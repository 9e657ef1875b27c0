/** Metrics, as prom-client prints them for a controller. */
import { expect } from 'vitest';
import { BoundedLabel } from '../../../src/base/bounded-label.js';
import { Rig } from '../support/rig.js';
import { type Runners, runner, unknownWord } from '../support/runner.js';
import { Series } from '../support/series.js';

const flowIdleTimeout = 1000;

export const metricsRunners: Runners = {
  'metrics.boundedLabel': runner<{ cap: number; values: readonly string[] }, { labels: readonly string[] }>(
    { input: ['cap', 'values'], expect: ['labels'] },
    ({ input: { cap, values }, expect: { labels } }) => {
      const label = new BoundedLabel(cap);
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
  'metrics.utilization': runner<
    { bandMaxRequests: number; queued: number },
    { bandRequestsGreaterThan: number; globalRequests: null; globalBytes: null }
  >(
    { input: ['bandMaxRequests', 'queued'], expect: ['bandRequestsGreaterThan', 'globalRequests', 'globalBytes'] },
    async ({ input: { bandMaxRequests, queued }, expect: expected }) => {
      const rig = new Rig({ bands: [{ priority: 0, limits: { maxRequests: bandMaxRequests } }] });
      const series = new Series(rig);
      rig.enqueueMany(queued);
      const figureOf = async (name: string): Promise<number | null> => (await series.of(name))[0]?.value ?? null;
      expect(await figureOf('capacity_utilization_requests')).toBeGreaterThan(expected.bandRequestsGreaterThan);
      expect(await figureOf('global_capacity_utilization_requests')).toBe(expected.globalRequests);
      expect(await figureOf('global_capacity_utilization_bytes')).toBe(expected.globalBytes);
    },
  ),
};
