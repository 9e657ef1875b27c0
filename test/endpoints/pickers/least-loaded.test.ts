import { describe, expect, it } from 'vitest';
import {
  concurrencyDetector,
  type EndpointPicker,
  EndpointPool,
  type EndpointView,
  leastLoaded,
} from '../../../src/index.js';
import { fakeItem } from '../../support/fake-item.js';
import { fakeEndpoint } from '../../support/fake-pool.js';
import { key, leaseOf, makeFlow, record, request, runNow } from '../../support/flow.js';

type Load = [inFlightRequests: number, inFlightTokens: number, dispatchedRequests: number];

describe('leastLoaded', () => {
  it.each<[string, Load[], string]>([
    [
      'fewest requests in flight',
      [
        [3, 0, 0],
        [1, 9, 9],
        [2, 0, 0],
      ],
      'e1',
    ],
    [
      'fewest tokens in flight among those',
      [
        [1, 50, 0],
        [1, 20, 9],
        [1, 30, 0],
      ],
      'e1',
    ],
    [
      'fewest requests ever sent among those',
      [
        [1, 5, 8],
        [1, 5, 3],
        [1, 5, 4],
      ],
      'e1',
    ],
    [
      'first place in the pool among those',
      [
        [0, 0, 0],
        [0, 0, 0],
      ],
      'e0',
    ],
    ['only one there is', [[9, 9, 9]], 'e0'],
  ])('picks the endpoint with the %s', (_, loads, expected) => {
    const endpoints = loads.map(([inFlightRequests, inFlightTokens, dispatchedRequests], i) =>
      fakeEndpoint(`e${i}`, { inFlightRequests, inFlightTokens, dispatchedRequests }),
    );
    expect(leastLoaded().pick(endpoints, fakeItem(), 0)?.id).toBe(expected);
  });

  it('counts in proportion to the weights', () => {
    const loaded = (id: string, weight: number, inFlightRequests: number, inFlightTokens = 0) =>
      fakeEndpoint(id, { weight, inFlightRequests, inFlightTokens });
    const pick = (...endpoints: EndpointView[]) => leastLoaded().pick(endpoints, fakeItem(), 0)?.id;
    expect(pick(loaded('small', 1, 2), loaded('large', 4, 7))).toBe('large');
    expect(pick(loaded('small', 1, 1), loaded('large', 4, 5))).toBe('small');
    expect(pick(loaded('small', 0.1, 1, 9), loaded('large', 0.3, 3, 26))).toBe('large');
  });

  it('gives endpoints their part by weight of requests that last, and of requests that end at once', () => {
    const pool = new EndpointPool();
    for (const [index, weight] of [1, 2, 5].entries()) pool.add(`e${index}`, { weight });
    const { flow } = makeFlow({ pool, saturationDetector: () => 0 });
    for (let i = 0; i < 80; i++) runNow(flow).release();
    expect(pool.endpoints.map(({ dispatchedRequests }) => dispatchedRequests)).toEqual([10, 20, 50]);
    for (let i = 0; i < 80; i++) runNow(flow);
    expect(pool.endpoints.map(({ inFlightRequests }) => inFlightRequests)).toEqual([10, 20, 50]);
  });

  it('spreads requests that end at once evenly', () => {
    const pool = new EndpointPool();
    for (const id of ['a', 'b', 'c']) pool.add(id);
    const { flow } = makeFlow({ pool });
    for (let i = 0; i < 30; i++) runNow(flow).release();
    expect(pool.endpoints.map(({ dispatchedRequests }) => dispatchedRequests)).toEqual([10, 10, 10]);
  });
});

describe('a picker', () => {
  function pool(...ids: string[]): EndpointPool {
    const made = new EndpointPool();
    for (const id of ids) made.add(id);
    return made;
  }

  it('gets the eligible endpoints, the request and the time, and decides', () => {
    const seen: [string[], number, number][] = [];
    const endpoints = pool('a', 'b', 'c');
    const picker: EndpointPicker = {
      type: 'by-size',
      pick(eligible, item, nowMs) {
        seen.push([eligible.map(({ id }) => id), item.byteSize, nowMs]);
        return eligible[item.byteSize];
      },
    };
    const { flow, clock } = makeFlow({ pool: endpoints, endpointPicker: picker });
    clock.advance(40);
    expect(leaseOf(flow.tryEnqueue({ byteSize: 2 }, key())).endpoint?.id).toBe('c');
    expect(leaseOf(flow.tryEnqueue({ byteSize: 1 }, key())).endpoint?.id).toBe('b');
    expect(seen).toEqual([
      [['a', 'b', 'c'], 2, 40],
      [['a', 'b'], 1, 40],
    ]);
  });

  it('is not asked when there is only one endpoint', () => {
    let asked = 0;
    const pick = (all: readonly EndpointView[]): EndpointView | undefined => {
      asked++;
      return all[0];
    };
    const { flow } = makeFlow({ pool: pool('a'), endpointPicker: { type: 'asked', pick } });
    expect(runNow(flow).endpoint?.id).toBe('a');
    expect(asked).toBe(0);
  });

  const former = pool('a').endpoints[0] as EndpointView;
  it.each<[string, (endpoints: readonly EndpointView[]) => unknown]>([
    [
      'throws',
      () => {
        throw new Error('faulty');
      },
    ],
    ['answers nothing', () => undefined],
    ['answers null', () => null],
    ['answers a name', () => 'a'],
    ['answers a lookalike', ([first]) => ({ ...first })],
    ['answers a namesake from another pool', () => former],
    ['reorders what it was given', (endpoints) => (endpoints as EndpointView[]).reverse()[0]],
  ])('that %s is reported, and the least loaded endpoint takes the request', (_, pick) => {
    const endpoints = pool('a', 'b');
    const { flow } = makeFlow({
      pool: endpoints,
      saturationDetector: () => 0,
      endpointPicker: { type: 'faulty', pick: pick as EndpointPicker['pick'] },
    });
    const errors = record(flow, 'pluginError');
    expect([runNow(flow), runNow(flow), runNow(flow)].map(({ endpoint }) => endpoint?.id)).toEqual(['a', 'b', 'a']);
    expect(errors).toHaveLength(3);
    expect(errors[0]).toMatchObject({ kind: 'endpointPicker', type: 'faulty', error: expect.any(Error) });
    expect(endpoints.endpoints.map(({ id }) => id)).toEqual(['a', 'b']);
  });

  it.each<[string, () => unknown]>([
    [
      'throws',
      () => {
        throw new Error('faulty');
      },
    ],
    ['answers nothing', () => undefined],
    ['keeps nobody', () => []],
  ])('chooses from all endpoints when the detector’s filter %s', (_, filter) => {
    const { flow } = makeFlow({
      pool: pool('a', 'b'),
      saturationDetector: { ...concurrencyDetector({ maxConcurrency: 9 }), filter: filter as () => EndpointView[] },
    });
    expect([runNow(flow), runNow(flow)].map(({ endpoint }) => endpoint?.id)).toEqual(['a', 'b']);
  });

  it('needs a pool', () => {
    expect(() => makeFlow({ endpointPicker: leastLoaded() })).toThrow(/pool: expected an EndpointPool/);
    expect(leaseOf(makeFlow().flow.tryEnqueue(request, key())).endpoint).toBeUndefined();
  });
});
