/**
 * What exporters read costs the same however much waits. Counted in elements looked at and questions asked; never in
 * time.
 */
import { type Meter, metrics } from '@opentelemetry/api';
import { Registry } from 'prom-client';
import { describe, expect, it } from 'vitest';
import { type ControllerFigures, type FlowController, overviewOf, roundRobin } from '../../src/index.js';
import type { BandFigures } from '../../src/observability/metrics/labelled-flows.js';
import { openTelemetryMetrics } from '../../src/observability/opentelemetry/index.js';
import { type ObservedFlow, prometheusMetrics } from '../../src/observability/prometheus/index.js';
import { makeFlow, request, runNow } from '../support/flow.js';
import { countWork } from './work-meter.js';

const limits = { maxRequests: 1e6, maxBytes: 1e9 };
const few = 1_000;
const many = 50 * few;
const labels = 10;
/** Questions about a flow that has a label: what waits, how far it is ahead; and one more for all. */
const questions = 2;
/** Flows that share what is beyond `maxFlows`: the only ones that are looked at and get no label. */
const overflowFlows = 64;

/** As many waiting requests as tenants. */
function crowded(tenants: number): FlowController {
  const { flow } = makeFlow({ limits, maxFlows: 2 * many, defaultBand: { limits, fairness: roundRobin() } });
  runNow(flow);
  for (let i = 0; i < tenants; i++) void flow.enqueue(request, { fairnessId: `tenant-${i}` });
  return flow;
}

/** The controller, and how often it was asked about a flow. */
function watched(flow: FlowController): ObservedFlow & { asked: number } {
  const watch = (band: BandFigures): BandFigures => ({
    ...band,
    waitingOf(fairnessId) {
      observed.asked++;
      return band.waitingOf(fairnessId);
    },
    service: () => band.service(),
    leadOf(fairnessId) {
      observed.asked++;
      return band.leadOf(fairnessId);
    },
    *waitingIds() {
      for (const fairnessId of band.waitingIds()) {
        observed.asked++;
        yield fairnessId;
      }
    },
  });
  const observed = {
    asked: 0,
    enqueue: flow.enqueue.bind(flow),
    on: flow.on.bind(flow),
    figures(): ControllerFigures {
      const figures = flow.figures();
      return { ...figures, bands: figures.bands.map(watch) };
    },
  };
  return observed;
}

/**
 * Elements that one scrape looks at, and questions about flows that it asks; the first scrape has given out the labels.
 */
function scrapeWork(tenants: number): { work: number; asked: number } {
  const flow = crowded(tenants);
  const observed = watched(flow);
  const register = new Registry();
  prometheusMetrics(observed, { register, maxFairnessIds: labels });
  // Every metric is read before the first is printed, in the turn of the call.
  const scrape = (): void => void register.metrics();
  scrape();
  expect(observed.asked).toBeLessThanOrEqual(2 * labels + overflowFlows);
  observed.asked = 0;
  return { work: countWork(scrape), asked: observed.asked };
}

function collectWork(tenants: number): { work: number; asked: number } {
  const observed = watched(crowded(tenants));
  const plain = metrics.getMeter('none');
  let collect: () => void = () => {};
  const meter: Meter = Object.assign(Object.create(plain) as Meter, {
    addBatchObservableCallback(callback: (result: { observe(): void }) => void) {
      collect = () => callback({ observe() {} });
    },
  });
  openTelemetryMetrics(observed, { meter, fairnessIdAttribute: true, maxFairnessIds: labels });
  collect();
  observed.asked = 0;
  return { work: countWork(collect), asked: observed.asked };
}

describe('with fifty times as many waiting requests and tenants', () => {
  it('a snapshot costs fifty times as much, which is why exporters do without', () => {
    const work = (tenants: number): number => {
      const flow = crowded(tenants);
      return countWork(() => overviewOf(flow, { flows: 'all' }));
    };
    expect(work(many)).toBeGreaterThan(50 * work(few));
  });

  it('the figures for exporters cost the same', () => {
    const work = (tenants: number): number => {
      const flow = crowded(tenants);
      return countWork(() => flow.figures());
    };
    expect(work(many)).toBe(work(few));
    expect(work(many)).toBeLessThan(100);
  });

  it('a scrape of Prometheus costs the same, and asks about the flows that have labels', () => {
    const { work, asked } = scrapeWork(many);
    expect({ work, asked }).toEqual(scrapeWork(few));
    expect(asked).toBeLessThanOrEqual(questions * labels + 1);
  });

  it('a collection of OpenTelemetry costs the same, and asks about the flows that have labels', () => {
    const { work, asked } = collectWork(many);
    expect({ work, asked }).toEqual(collectWork(few));
    expect(asked).toBeLessThanOrEqual(2 * questions * labels + 1); // each figure by itself
  });
});
