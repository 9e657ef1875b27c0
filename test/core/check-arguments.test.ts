import { describe, expect, it } from 'vitest';
import { FlowConfigError, type FlowKey, type FlowRequest } from '../../src/index.js';
import { countedAbort, key, makeFlow, request } from '../support/flow.js';

const wrong: [string, unknown, unknown, string[]][] = [
  ['no request', undefined, key(), ['request']],
  ['null for a request', null, key(), ['request']],
  ['text for a request', 'hello', key(), ['request']],
  ['no key', request, undefined, ['key']],
  ['text for a key', request, 'tenant', ['key']],
  ['no byteSize', {}, key(), ['request.byteSize']],
  ['a negative byteSize', { byteSize: -1 }, key(), ['request.byteSize']],
  ['a broken byteSize', { byteSize: 1.5 }, key(), ['request.byteSize']],
  ['NaN for a byteSize', { byteSize: Number.NaN }, key(), ['request.byteSize']],
  ['text for a byteSize', { byteSize: '10' }, key(), ['request.byteSize']],
  ['an endless byteSize', { byteSize: Number.POSITIVE_INFINITY }, key(), ['request.byteSize']],
  ['a negative ttlMs', { ...request, ttlMs: -1 }, key(), ['request.ttlMs']],
  ['NaN for ttlMs', { ...request, ttlMs: Number.NaN }, key(), ['request.ttlMs']],
  ['text for ttlMs', { ...request, ttlMs: '5s' }, key(), ['request.ttlMs']],
  ['negative tokens', { ...request, tokens: -1 }, key(), ['request.tokens']],
  ['NaN for tokens', { ...request, tokens: Number.NaN }, key(), ['request.tokens']],
  ['a negative target', { ...request, sloTtftMs: -0.5 }, key(), ['request.sloTtftMs']],
  ['NaN for receivedAtMs', { ...request, receivedAtMs: Number.NaN }, key(), ['request.receivedAtMs']],
  ['an endless receivedAtMs', { ...request, receivedAtMs: Number.POSITIVE_INFINITY }, key(), ['request.receivedAtMs']],
  ['a signal that is none', { ...request, signal: { aborted: false } }, key(), ['request.signal']],
  ['null for a signal', { ...request, signal: null }, key(), ['request.signal']],
  ['no fairnessId', request, {}, ['key.fairnessId']],
  ['an empty fairnessId', request, { fairnessId: '' }, ['key.fairnessId']],
  ['a number for a fairnessId', request, { fairnessId: 7 }, ['key.fairnessId']],
  ['NaN for a priority', request, { fairnessId: 'a', priority: Number.NaN }, ['key.priority']],
  ['a broken priority', request, { fairnessId: 'a', priority: 0.5 }, ['key.priority']],
  ['a priority beyond safe integers', request, { fairnessId: 'a', priority: 2 ** 53 }, ['key.priority']],
  ['null for a priority', request, { fairnessId: 'a', priority: null }, ['key.priority']],
  [
    'several of them',
    { byteSize: -1, ttlMs: -1 },
    { fairnessId: '' },
    ['request.byteSize', 'request.ttlMs', 'key.fairnessId'],
  ],
];

describe('a call that cannot be right', () => {
  it.each(wrong)('with %s: enqueue rejects, and names what is wrong', async (_, badRequest, badKey, paths) => {
    const { flow } = makeFlow();
    const error: unknown = await flow
      .enqueue(badRequest as FlowRequest, badKey as FlowKey)
      .catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(FlowConfigError);
    expect((error as FlowConfigError).issues.map(({ path }) => path)).toEqual(paths);
    expect((error as FlowConfigError).message).toMatch(/^enqueue: /);
    expect(flow.stats()).toMatchObject({ enqueued: 0, waiting: 0, inFlight: 0 });
  });

  it.each(wrong)('with %s: tryEnqueue throws the same', (_, badRequest, badKey) => {
    const { flow } = makeFlow();
    expect(() => flow.tryEnqueue(badRequest as FlowRequest, badKey as FlowKey)).toThrow(FlowConfigError);
    expect(() => flow.tryEnqueue(badRequest as FlowRequest, badKey as FlowKey)).toThrow(/^tryEnqueue: /);
    expect(flow.stats().enqueued).toBe(0);
  });

  it('says what was expected and what came', async () => {
    const { flow } = makeFlow();
    await expect(flow.enqueue({ byteSize: -1 }, key())).rejects.toThrow(
      'enqueue: request.byteSize: expected an integer from 0 up; got -1 (number)',
    );
  });
});

describe('a request with a property that throws when it is read', () => {
  const hostile: FlowRequest = {
    get byteSize(): number {
      throw new Error('no size today');
    },
  };

  it('rejects the promise of enqueue, and throws from tryEnqueue, with a FlowConfigError', async () => {
    const { flow } = makeFlow();
    const issue = { path: 'request', expected: 'properties that can be read' };
    await expect(flow.enqueue(hostile, key())).rejects.toMatchObject({ name: 'FlowConfigError', issues: [issue] });
    expect(() => flow.tryEnqueue(hostile, key())).toThrow(FlowConfigError);
    expect(flow.stats()).toMatchObject({ enqueued: 0, waiting: 0 });
  });
});

describe('a call that is right', () => {
  it.each<[string, FlowRequest, FlowKey]>([
    ['as little as possible', { byteSize: 0 }, { fairnessId: 'a' }],
    [
      'everything undefined that may be',
      { byteSize: 0, signal: undefined, ttlMs: undefined, tokens: undefined },
      { fairnessId: 'a', priority: undefined },
    ],
    ['zeros', { byteSize: 0, ttlMs: 0, tokens: 0, sloTtftMs: 0, receivedAtMs: 0 }, { fairnessId: 'a', priority: 0 }],
    ['fractions of milliseconds', { byteSize: 0, ttlMs: 0.5, sloTtftMs: 0.5, receivedAtMs: -0.5 }, { fairnessId: 'a' }],
    [
      'no end',
      { byteSize: 0, ttlMs: Number.POSITIVE_INFINITY, sloTtftMs: Number.POSITIVE_INFINITY },
      { fairnessId: 'a' },
    ],
    ['minus zero', { byteSize: 0 }, { fairnessId: 'a', priority: -0 }],
    ['a signal', { byteSize: 0, signal: countedAbort().signal }, { fairnessId: 'a' }],
  ])('may have %s', async (_, goodRequest, goodKey) => {
    const { flow } = makeFlow();
    expect((await flow.enqueue(goodRequest, goodKey)).type).toBe('Dispatched');
    expect(flow.stats().bands).toBe(1);
  });
});
