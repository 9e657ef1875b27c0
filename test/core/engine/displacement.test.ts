import { describe, expect, it } from 'vitest';
import { type FlowController, type Outcome, overviewOf } from '../../../src/index.js';
import { audit } from '../../../src/testing/index.js';
import { dropOf, key, leaseOf, makeFlow, runNow } from '../../support/flow.js';

/** A full pool and a queue for three, with what waits by name. */
function fullQueue(options: Parameters<typeof makeFlow>[0] = {}): {
  flow: FlowController;
  ask(name: string, priority: number, byteSize?: number): Promise<Outcome>;
} {
  const { flow } = makeFlow({ overflow: 'displace', limits: { maxRequests: 3, maxBytes: 100 }, ...options });
  runNow(flow);
  return { flow, ask: (name, priority, byteSize = 10) => flow.enqueue({ byteSize }, key(name, priority)) };
}

function waitingBands(flow: FlowController): Record<number, number> {
  return Object.fromEntries(
    overviewOf(flow, { flows: 'all' })
      .bands.filter(({ waiting }) => waiting > 0)
      .map(({ priority, waiting }) => [priority, waiting]),
  );
}

describe("overflow: 'displace'", () => {
  it('lets the newest request of the lowest sheddable band leave for a higher one', async () => {
    const { flow, ask } = fullQueue();
    const old = ask('old', -5);
    const young = ask('young', -5);
    void ask('middle', -1);
    void ask('premium', 10);
    expect(dropOf(await young)).toMatchObject({ type: 'EvictedOther', reason: 'displaced' });
    expect(waitingBands(flow)).toEqual({ 10: 1, [-1]: 1, [-5]: 1 });
    void ask('premium', 10);
    expect(dropOf(await old).reason).toBe('displaced');
    expect(waitingBands(flow)).toEqual({ 10: 2, [-1]: 1 });
  });

  it('never lets equals displace each other, nor anything that is not sheddable leave', async () => {
    const { ask } = fullQueue();
    for (const name of ['a', 'b', 'c']) void ask(name, -1);
    expect(dropOf(await ask('equal', -1)).reason).toBe('global-max-requests');
    const { ask: askNormal } = fullQueue();
    for (const name of ['a', 'b', 'c']) void askNormal(name, 0);
    expect(dropOf(await askNormal('premium', 10)).reason).toBe('global-max-requests');
  });

  it('lets nobody leave for a request that its own band has no place for', async () => {
    const { flow, ask } = fullQueue({ bands: [{ priority: 10, limits: { maxRequests: 1 } }] });
    for (const priority of [-1, -1, 10]) void ask('any', priority);
    expect(dropOf(await ask('premium', 10)).type).toBe('RejectedCapacity');
    expect(waitingBands(flow)).toEqual({ 10: 1, [-1]: 2 });
    expect(audit(flow).violations).toEqual([]);
  });

  it('makes room for bytes with as many victims as it takes, but displaces nobody in vain', async () => {
    const { flow, ask } = fullQueue({ limits: { maxRequests: 10, maxBytes: 100 } });
    void ask('normal', 0, 30);
    const small = ask('small', -1, 20);
    const large = ask('large', -2, 50);
    expect(dropOf(await ask('too large', 5, 80)).reason).toBe('global-max-bytes');
    expect(waitingBands(flow)).toEqual({ 0: 1, [-1]: 1, [-2]: 1 });
    void ask('fits', 5, 70);
    expect(dropOf(await large).reason).toBe('displaced');
    expect(dropOf(await small).reason).toBe('displaced');
    expect(waitingBands(flow)).toEqual({ 5: 1, 0: 1 });
  });

  it('does not look beyond a band that is full itself', async () => {
    const { ask } = fullQueue({ bands: [{ priority: 5, limits: { maxRequests: 1 } }] });
    void ask('low', -1);
    void ask('first', 5);
    expect(dropOf(await ask('second', 5)).reason).toBe('band-max-requests');
  });

  it('is off by default', async () => {
    const { ask } = fullQueue({ overflow: 'reject' });
    for (const name of ['a', 'b', 'c']) void ask(name, -1);
    expect(dropOf(await ask('premium', 10)).type).toBe('RejectedCapacity');
  });

  it('knows the newest of what waited before it was switched on', async () => {
    const { flow, ask } = fullQueue({ overflow: 'reject' });
    void ask('a', -1);
    void ask('b', -1);
    const newest = ask('c', -1);
    flow.reconfigure({ overflow: 'displace' });
    void ask('premium', 10);
    expect(dropOf(await newest).reason).toBe('displaced');
  });
});

describe('limits of single fairness IDs', () => {
  it('keep one tenant from filling its band', async () => {
    const { flow } = makeFlow({ flows: { greedy: { limits: { maxRequests: 1 } } } });
    runNow(flow);
    void flow.enqueue({ byteSize: 1 }, key('greedy'));
    expect(dropOf(await flow.enqueue({ byteSize: 1 }, key('greedy')))).toMatchObject({
      reason: 'flow-max-requests',
      limit: { max: 1, used: 1 },
    });
    void flow.enqueue({ byteSize: 1 }, key('other'));
    void flow.enqueue({ byteSize: 1 }, key('other'));
    expect(flow.stats().waiting).toBe(3);
  });
});

it('files a newcomer under a flow that exists, also when the displaced request had the idle flow of the newcomer collected', async () => {
  const { flow, clock } = makeFlow({
    overflow: 'displace',
    limits: { maxRequests: 1 },
    flowIdleTimeout: 1000,
    defaultBand: { flowLimits: { maxRequests: 5 } },
  });
  const held = runNow(flow, { priority: 20 });
  clock.advance(500);
  const once = flow.enqueue({ byteSize: 1 }, key('premium', 10));
  held.release();
  const running = leaseOf(await once); // the flow of premium is idle since 500
  clock.advance(600);
  void flow.enqueue({ byteSize: 1 }, key('batch', -1));
  clock.advance(500);
  void flow.enqueue({ byteSize: 1 }, key('premium', 10));
  expect(flow.stats().waiting).toBe(1);
  expect(audit(flow).violations).toEqual([]);
  running.release();
});
