import { describe, expect, it } from 'vitest';
import {
  concurrencyDetector,
  EndpointPool,
  FlowConfigError,
  maxOf,
  type SaturationDetector,
} from '../../../src/index.js';
import type { SeatView, ServerAnswer } from '../../../src/types/index.js';
import { key, leaseOf, makeFlow, record, request, runNow } from '../../support/flow.js';

const busy: ServerAnswer = { status: 429, headers: { 'retry-after': '1' }, body: 'slow down' };

/** A detector that lets everything pass and writes down what it hears. */
function listening(extra: Partial<SaturationDetector> = {}): SaturationDetector & { heard: unknown[][] } {
  const heard: unknown[][] = [];
  return {
    type: 'listening',
    heard,
    saturation: () => 0,
    dispatched: (endpoint, _nowMs, seat) => void heard.push(['dispatched', endpoint.id, seat]),
    answered: (endpoint, nowMs, seat, answer) => void heard.push(['answered', endpoint.id, seat, answer.status, nowMs]),
    reported: (endpoint, _nowMs, seat) => void heard.push(['reported', endpoint.id, seat, seat.usage.promptTokens]),
    released: (endpoint, _nowMs, seat) => void heard.push(['released', endpoint.id, seat]),
    ...extra,
  };
}

describe('what a server answered', () => {
  it('reaches the detectors with the endpoint and the seat, which is the same from dispatch to release', () => {
    const pool = new EndpointPool();
    pool.add('key-1');
    const detector = listening();
    const { flow, clock } = makeFlow({ pool, saturationDetector: detector });
    const lease = runNow(flow);
    clock.advance(40);
    lease.answered(new Response(null, { headers: { 'x-ratelimit-remaining-requests': '3' } }));
    expect(lease.isPutOff).toBe(false);
    lease.report({ promptTokens: 12 });
    lease.release();
    const seat = detector.heard[0]?.[2] as SeatView;
    expect(detector.heard).toEqual([
      ['dispatched', 'key-1', seat],
      ['answered', 'key-1', seat, 200, 40],
      ['reported', 'key-1', seat, 12],
      ['released', 'key-1', seat],
    ]);
    expect(seat).toMatchObject({ isReported: true, isUnsent: false, item: { fairnessId: 'running' } });
  });

  it('reaches the detectors inside a composite, and those of single bands', () => {
    const [inner, own] = [listening(), listening()];
    const { flow } = makeFlow({
      saturationDetector: maxOf(inner, concurrencyDetector()),
      bands: [{ priority: 0, saturationDetector: own }],
    });
    runNow(flow).answered(busy);
    expect([inner, own].map(({ heard }) => heard.map(([news]) => news))).toEqual([
      ['dispatched', 'answered'],
      ['dispatched', 'answered'],
    ]);
  });

  it('is ignored after the release', () => {
    const detector = listening();
    const lease = runNow(makeFlow({ saturationDetector: detector }).flow);
    lease.release();
    lease.answered(busy);
    lease.unsent();
    expect(detector.heard.map(([news]) => news)).toEqual(['dispatched', 'released']);
    expect(lease.isPutOff).toBe(false);
  });

  it.each([
    [
      { status: 20, headers: {} },
      { path: 'status', expected: 'an HTTP status, an integer from 100 to 599', got: '20 (number)' },
    ],
    [
      { status: 200, headers: null },
      { path: 'headers', expected: 'Headers, or an object of headers', got: 'null' },
    ],
  ])('is an error when it is none: %j', (answer, issue) => {
    const lease = runNow(makeFlow().flow);
    let caught: unknown;
    try {
      lease.answered(answer as unknown as ServerAnswer);
    } catch (error) {
      caught = error;
    }
    expect(caught).toBeInstanceOf(FlowConfigError);
    expect((caught as FlowConfigError).issues).toEqual([issue]);
  });

  it('costs a detector that throws a plugin error, and nothing else', () => {
    const detector = listening({
      answered() {
        throw new Error('deaf');
      },
    });
    const { flow } = makeFlow({ saturationDetector: detector });
    const errors = record(flow, 'pluginError');
    const lease = runNow(flow);
    lease.answered(busy);
    lease.release();
    expect(errors).toMatchObject([{ kind: 'saturationDetector', type: 'listening', error: new Error('deaf') }]);
    expect(flow.stats()).toMatchObject({ inFlight: 0, released: 1 });
  });

  it('says at the release that nothing was sent, where the host told so', () => {
    const detector = listening();
    const lease = runNow(makeFlow({ saturationDetector: detector }).flow);
    lease.unsent();
    lease.release();
    expect(detector.heard.at(-1)?.[2]).toMatchObject({ isUnsent: true, isReported: false });
  });
});

describe('a request that its server put off', () => {
  it('goes back to its place, ahead of what came after it, as often as the host lets it', async () => {
    const { flow } = makeFlow({ saturationDetector: maxOf(concurrencyDetector({ maxConcurrency: 1 }), listening()) });
    let lease = leaseOf(await flow.enqueue(request, key()));
    const later = flow.enqueue(request, key());
    for (let turn = 0; turn < 3; turn++) {
      lease.answered(busy);
      expect(lease.isPutOff).toBe(true);
      lease = leaseOf(await lease.requeue());
    }
    expect(flow.stats()).toMatchObject({ inFlight: 1, waiting: 1 });
    lease.release();
    expect((await later).type).toBe('Dispatched');
  });

  it('stays where it is when no detector hears of answers', async () => {
    const lease = runNow(makeFlow().flow);
    lease.answered(busy);
    expect(lease.isPutOff).toBe(false);
    await expect(lease.requeue()).rejects.toThrow('put off by its server');
  });
});
