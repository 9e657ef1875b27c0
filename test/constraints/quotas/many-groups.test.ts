import { describe, expect, it } from 'vitest';
import { EndpointPool, quotaDetector } from '../../../src/index.js';
import { key, leaseOf, makeFlow } from '../../support/flow.js';

describe('servers that come and go for ever', () => {
  it('leave ten thousand groups behind at most, and none of those that are used is forgotten', () => {
    const detector = quotaDetector({
      travel: 0,
      groups: [{ by: 'endpoint', quotas: [{ unit: 'requests', limit: 60 }] }],
    });
    const pool = new EndpointPool();
    pool.add('first');
    const { flow, clock } = makeFlow({ constraints: [detector], pool, defaultRequestTtl: 0 });
    const send = () => leaseOf(flow.tryEnqueue({ byteSize: 1 }, key()));
    const lease = send();
    for (let i = 0; i < 30_000; i++) {
      const server = pool.add(`server-${i}`);
      flow.stats();
      pool.remove(server);
    }
    const { quotas } = detector.quotas(clock.now());
    expect(quotas.length).toBeLessThanOrEqual(10_000);
    expect(quotas.filter(({ group }) => group === 'first')).toMatchObject([{ reserved: 1 }]);
    lease.release();
    clock.advance(1000);
    send();
    expect(detector.quotas(clock.now()).quotas.filter(({ group }) => group === 'first')).toMatchObject([
      { reserved: 1 },
    ]);
  });
});
