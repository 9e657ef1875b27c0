import { describe, expect, it } from 'vitest';
import { type DemandHandlerOptions, demandHandler } from '../../../src/adapters/http/index.js';
import { FlowConfigError } from '../../../src/index.js';
import { key, makeFlow, runNow } from '../../support/flow.js';

const get = { method: 'GET', headers: {} };

describe('demandHandler', () => {
  it('answers with the demand, bands by priority, null where something is not known', async () => {
    const { flow } = makeFlow({ bands: [{ priority: 100 }, { priority: 0 }], saturationDetector: () => 1 });
    void flow.enqueue({ byteSize: 10, tokens: 5 }, key('a', 100));
    const { status, headers, body } = await demandHandler(flow)(get);
    expect([status, headers['content-type'], headers['cache-control']]).toEqual([200, 'application/json', 'no-store']);
    const figures = { waitingTokens: 5, waitingBytes: 10, dispatchedPerSecond: 0, timeToDrainMs: null };
    expect(JSON.parse(body)).toEqual({
      ...figures,
      requests: 1,
      waiting: 1,
      inFlight: 0,
      inFlightTokens: 0,
      arrivedPerSecond: 1,
      saturation: 1,
      endpoints: null,
      bands: {
        100: { ...figures, priority: 100, waiting: 1, arrivedPerSecond: 1 },
        0: {
          priority: 0,
          waiting: 0,
          waitingTokens: 0,
          waitingBytes: 0,
          arrivedPerSecond: 0,
          dispatchedPerSecond: 0,
          timeToDrainMs: 0,
        },
      },
    });
  });

  it('names no flow', async () => {
    const { flow } = makeFlow();
    runNow(flow);
    void flow.enqueue({ byteSize: 1 }, key('sk-secret'));
    expect((await demandHandler(flow)(get)).body).not.toContain('sk-secret');
  });

  it('lets in whom the host lets in', async () => {
    const { flow } = makeFlow();
    const handle = demandHandler(flow, {
      authorize: ({ headers }) => Reflect.get(headers, 'authorization') === 'Bearer keda',
    });
    expect((await handle(get)).status).toBe(403);
    expect((await handle({ method: 'GET', headers: { authorization: 'Bearer keda' } })).status).toBe(200);
  });

  it('only reads', async () => {
    const { flow } = makeFlow();
    const { status, headers } = await demandHandler(flow)({ method: 'POST', headers: {}, body: '{}' });
    expect([status, headers.allow]).toEqual([405, 'GET, HEAD']);
  });

  it('rejects an authorize that is no function', () => {
    const { flow } = makeFlow();
    expect(() => demandHandler(flow, { authorize: true } as unknown as DemandHandlerOptions)).toThrow(FlowConfigError);
  });
});
