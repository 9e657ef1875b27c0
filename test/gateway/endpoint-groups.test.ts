/** Own servers first, paid ones after: real sockets in front of and behind the gateway. */
import { describe, expect, it } from 'vitest';
import { fileOf, startGateway } from './support/gateway.js';
import { type Answer, serve, startUpstream } from './support/upstream.js';

const chat = { authorization: 'Bearer chat' };
const batch = { authorization: 'Bearer batch' };
const ask = { model: 'm', messages: [{ role: 'user', content: 'hello' }], max_tokens: 10 };

/** One own server of one seat, whose answers the test ends, and a provider of four. */
async function ownAndPaid(more: { after?: string; quotas?: object[] } = {}) {
  const held: Parameters<Answer>[0][] = [];
  const own = await startUpstream((received) => {
    if (received.req.url === '/health') received.res.end();
    else held.push(received);
  });
  const paid = await startUpstream();
  const { after = '100ms', quotas = [{ unit: 'requests', limit: 100 }] } = more;
  const groups = [{ by: 'label', label: 'group', is: 'paid', quotas, learn: false }];
  const gateway = await startGateway(
    fileOf(
      [
        { id: 'own', url: own.url, labels: { group: 'own' }, healthPath: '/health' },
        { id: 'paid', url: paid.url, labels: { group: 'paid' }, weight: 4 },
      ],
      {
        plugins: [
          { type: 'concurrency-detector', parameters: { maxConcurrency: 1 } },
          { type: 'quota-detector', parameters: { groups, travel: '0s' } },
        ],
        flowControl: {
          saturationDetector: { pluginRef: 'concurrency-detector' },
          constraintPluginRefs: ['quota-detector'],
          priorityBands: [
            { priority: 100, endpoints: ['own', { group: 'paid', after }] },
            { priority: -10, endpoints: ['own'], defaultRequestTTL: '400ms' },
          ],
          defaultPriorityBand: { endpoints: ['own'] },
        },
        auth: {
          keys: [
            { key: 'chat', tenant: 'chat', priority: 100 },
            { key: 'batch', tenant: 'batch', priority: -10 },
          ],
        },
        admin: { token: 'ops' },
        health: { interval: '50ms', timeout: '1s', failures: 1 },
        retry: { enabled: false },
      },
    ),
  );
  const groupsOf = () =>
    Object.fromEntries(gateway.gateway.flow.figures().groups.map(({ group, dispatched }) => [group, dispatched]));
  return { ...gateway, own, paid, held, groupsOf };
}

describe('a gateway whose bands name groups of servers', () => {
  it('sends to the provider what has waited for its own, and says so in its metrics', async () => {
    const { post, paid, held, gateway, groupsOf } = await ownAndPaid();
    const first = post(ask, { headers: chat });
    await expect.poll(() => held.length).toBe(1);
    const startedAtMs = performance.now();
    const second = await post(ask, { headers: chat });
    expect(second.status).toBe(200);
    expect(performance.now() - startedAtMs).toBeGreaterThanOrEqual(99);
    serve(held[0] as Parameters<Answer>[0], 0);
    expect((await first).status).toBe(200);
    expect([held.length, paid.received.length]).toEqual([1, 1]);
    expect(groupsOf()).toEqual({ own: 1, paid: 1 });
    const metrics = await (await fetch(`${gateway.url}/metrics`, { headers: { authorization: 'Bearer ops' } })).text();
    expect(metrics).toMatch(/flow_control_group_overflowed_total\{group="paid"[^}]*\} 1$/m);
    expect(metrics).toMatch(/flow_control_group_overflowed_total\{group="own"[^}]*\} 0$/m);
  });

  it('sends chat there at once when its own server dies, and batch never', async () => {
    const { post, own, paid, gateway } = await ownAndPaid({ after: '60s' });
    own.server.closeAllConnections();
    own.server.close();
    await expect.poll(() => gateway.flow.figures().groups[0]?.available).toBe(0);
    expect((await post(ask, { headers: chat })).status).toBe(200);
    const dropped = await post(ask, { headers: batch });
    expect([dropped.status, dropped.headers.get('content-type')]).toEqual([503, expect.stringContaining('json')]);
    expect(paid.received.length).toBe(1);
  });

  it('keeps within the quota of the provider', async () => {
    const { post, paid, held } = await ownAndPaid({ quotas: [{ unit: 'requests', limit: 2, per: '1h' }] });
    void post(ask, { headers: chat });
    await expect.poll(() => held.length).toBe(1);
    const answers = Array.from({ length: 4 }, () => post(ask, { headers: chat }));
    await Promise.all(answers.slice(0, 2));
    serve(held[0] as Parameters<Answer>[0], 0);
    await expect.poll(() => held.length).toBe(2);
    serve(held[1] as Parameters<Answer>[0], 0);
    await expect.poll(() => held.length).toBe(3);
    serve(held[2] as Parameters<Answer>[0], 0);
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect(paid.received.length).toBe(2);
  });
});
