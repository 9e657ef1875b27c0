import { expect, it } from 'vitest';
import { dynamoContract, toHttpResponse } from '../../../src/adapters/http/index.js';
import { explainDrop, FlowConfigError, type FlowRequest } from '../../../src/index.js';
import { audit } from '../../../src/testing/index.js';
import { dropOf, key, leaseOf, makeFlow, record, request, runNow } from '../../support/flow.js';

interface Keyed extends FlowRequest {
  readonly apiKey: string;
}

function withKeys(revoked: Set<string>) {
  const asked: string[] = [];
  const made = makeFlow({
    onDispatch: ({ request: given }) => {
      const { apiKey } = given as Keyed;
      asked.push(apiKey);
      return revoked.has(apiKey) ? 'its API key was revoked' : undefined;
    },
  });
  const ask = (apiKey: string) => made.flow.enqueue({ ...request, apiKey } as Keyed, key(apiKey));
  return { ...made, ask, asked };
}

it('a request that became void while it waited is dropped when its turn comes, and the next one goes', async () => {
  const revoked = new Set<string>();
  const { flow, ask, asked } = withKeys(revoked);
  const errors = record(flow, 'pluginError');
  const first = runNow(flow);
  const [gone, next] = [ask('a'), ask('b')];
  revoked.add('a');
  expect(asked).toEqual([]);
  first.release();
  const drop = dropOf(await gone);
  expect(drop).toMatchObject({
    type: 'EvictedOther',
    reason: 'revoked',
    detail: 'its API key was revoked',
    retryAfterMs: undefined,
  });
  expect(drop.explanation).toMatchObject({
    decidedBy: 'host',
    text: expect.stringContaining('became void meanwhile: its API key was revoked'),
  });
  leaseOf(await next);
  expect(asked).toEqual(['a', 'b']);
  expect(flow.stats()).toMatchObject({ inFlight: 1, waiting: 0 });
  expect(errors).toEqual([]);
  expect(audit(flow).violations).toEqual([]);
});

it('a request that became void leaves its turn to the next of its band, and not to a lower one', async () => {
  const { flow, ask } = withKeys(new Set(['a']));
  const first = runNow(flow);
  const low = flow.enqueue({ ...request, apiKey: 'c' } as Keyed, key('c', -1));
  const [gone, next] = [ask('a'), ask('b')];
  first.release();
  expect([dropOf(await gone).reason, leaseOf(await next).fairnessId]).toEqual(['revoked', 'b']);
  expect(flow.stats()).toMatchObject({ inFlight: 1, waiting: 1 });
  leaseOf(await next).release();
  leaseOf(await low);
});

it('a request that goes without waiting is not asked about', () => {
  const { flow, ask, asked } = withKeys(new Set(['a']));
  void ask('a');
  expect(asked).toEqual([]);
  expect(flow.stats().dispatched).toBe(1);
});

it('is answered with 403 by every contract, and nobody is told to come back', async () => {
  const { flow, ask } = withKeys(new Set(['a']));
  const lease = runNow(flow);
  const waiting = ask('a');
  lease.release();
  const drop = dropOf(await waiting);
  expect(explainDrop(drop)).toMatchObject({ status: 403, code: 'ERR_FLOW_REVOKED', retryAfterSeconds: undefined });
  for (const contract of ['gateway-api', 'llm-d', 'dynamo', dynamoContract(529)] as const) {
    const { status, headers, body } = toHttpResponse(drop, { contract });
    expect([status, headers['retry-after'], headers['retry-after-ms']]).toEqual([403, undefined, undefined]);
    expect(body).toContain('its API key was revoked');
  }
});

it.each([
  [
    'throws',
    () => {
      throw new Error('the key store is down');
    },
    'the key store is down',
  ],
  ['answers later', () => Promise.resolve('no') as unknown as string, 'onDispatch must return undefined, or a text'],
  ['answers with nothing that can be told', () => '' as string, 'onDispatch must return undefined, or a text'],
])('a function that %s lets the request go, and is reported', async (_, onDispatch, message) => {
  const { flow } = makeFlow({ onDispatch });
  const errors = record(flow, 'pluginError');
  const lease = runNow(flow);
  const waiting = flow.enqueue(request, key());
  lease.release();
  leaseOf(await waiting);
  expect(errors).toMatchObject([
    { kind: 'onDispatch', type: 'onDispatch', error: { message: expect.stringContaining(message) } },
  ]);
});

it('can be set and taken away while requests wait', async () => {
  const { flow } = makeFlow();
  const lease = runNow(flow);
  const waiting = [flow.enqueue(request, key()), flow.enqueue(request, key())];
  flow.reconfigure({ onDispatch: () => 'nobody' });
  flow.reconfigure({ onDispatch: undefined });
  lease.release();
  leaseOf(await waiting[0]).release();
  leaseOf(await waiting[1]);
  expect(() => flow.reconfigure({ onDispatch: async () => undefined } as never)).toThrow(FlowConfigError);
});
