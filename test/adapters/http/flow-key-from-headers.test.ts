import { describe, expect, it } from 'vitest';
import {
  flowKeyFromHeaders,
  type HeaderSource,
  type Objectives,
  sloTtftMsFromHeaders,
} from '../../../src/adapters/http/index.js';

const headers = {
  'x-gateway-inference-fairness-id': 'tenant-a',
  'x-gateway-inference-objective': 'premium',
  'x-slo-ttft-ms': '250',
};

describe('flowKeyFromHeaders', () => {
  it('believes nothing by default', () => {
    expect(flowKeyFromHeaders(headers, { objectives: { premium: 100 } })).toEqual({
      fairnessId: 'default-flow',
      priority: 0,
      sloTtftMs: undefined,
    });
  });

  it('reads tenant, objective and SLO where headers may be believed', () => {
    expect(flowKeyFromHeaders(headers, { objectives: { premium: 100 }, trust: true })).toEqual({
      fairnessId: 'tenant-a',
      priority: 100,
      sloTtftMs: 250,
    });
  });

  it.each<[what: string, objectives: Objectives | undefined, expected: number]>([
    ['a map', new Map([['premium', 100]]), 100],
    ['a record', { premium: -10 }, -10],
    ['an unknown objective', { standard: 7 }, 0],
    ['no objectives', undefined, 0],
    ['an objective without a priority', { premium: undefined }, 0],
    ['the same in a map', new Map([['premium', undefined]]), 0],
  ])('priority from %s', (_, objectives, expected) => {
    expect(flowKeyFromHeaders(headers, { objectives, trust: true }).priority).toBe(expected);
  });

  it.each(['toString', '__proto__', 'constructor'])('an objective called %s is unknown', (objective) => {
    expect(
      flowKeyFromHeaders({ 'x-gateway-inference-objective': objective }, { objectives: {}, trust: true }).priority,
    ).toBe(0);
  });

  it('puts requests without a fairness ID into the default flow', () => {
    expect(flowKeyFromHeaders({}, { trust: true }).fairnessId).toBe('default-flow');
    expect(flowKeyFromHeaders({}, { trust: true, defaultFairnessId: 'anonymous' }).fairnessId).toBe('anonymous');
    expect(flowKeyFromHeaders(headers, { defaultFairnessId: 'anonymous' }).fairnessId).toBe('anonymous');
  });
});

describe('the endpoint subset', () => {
  const name = 'X-Gateway-Destination-Endpoint-Subset';
  it.each<[string, HeaderSource, string | undefined]>([
    ['none', {}, undefined],
    ['one address', { [name]: '10.0.0.1:8000' }, '10.0.0.1:8000'],
    ['web headers', new Headers({ [name]: '10.0.0.1, 10.0.0.2' }), '10.0.0.1, 10.0.0.2'],
    ['several headers', { [name]: ['10.0.0.1', '10.0.0.2'] }, '10.0.0.1, 10.0.0.2'],
    ['a header without addresses, which is not none', { [name]: '' }, ''],
    ['web headers without addresses', new Headers({ [name]: '' }), ''],
    ['web headers without that header', new Headers(), undefined],
  ])('is read from %s', (_, headers, expected) => {
    expect(flowKeyFromHeaders(headers, { trust: true }).endpointSubset).toBe(expected);
    expect(flowKeyFromHeaders(headers).endpointSubset).toBeUndefined();
  });
});

describe('the longest wait', () => {
  it.each([
    ['1.5s', 1500],
    ['250ms', 250],
    ['1m30s', 90_000],
    ['0s', undefined],
    ['-5s', undefined],
    ['5', undefined],
    ['soon', undefined],
    ['', undefined],
  ])('"%s" is %s', (value, expected) => {
    const headers = { 'x-llm-d-inference-ttl': value };
    expect(flowKeyFromHeaders(headers, { trust: true }).maxWaitMs).toBe(expected);
    expect(flowKeyFromHeaders(headers).maxWaitMs).toBeUndefined();
  });
});

describe('sloTtftMsFromHeaders', () => {
  it.each([
    ['200', 200],
    [' 200 ', 200],
    ['0', 0],
    ['-0', 0],
    ['+5', 5],
    ['007', 7],
    ['9223372036854', 9_223_372_036_854],
    ['9223372036855', undefined],
    ['99999999999999999999', undefined],
    ['-1', undefined],
    ['', undefined],
    ['1.5', undefined],
    ['1e3', undefined],
    ['0x10', undefined],
    ['1_000', undefined],
    ['100ms', undefined],
    ['100, 200', undefined],
  ])('"%s" is %s', (value, expected) => {
    expect(sloTtftMsFromHeaders({ 'x-slo-ttft-ms': value })).toBe(expected);
  });

  it('is undefined without the header', () => {
    expect(sloTtftMsFromHeaders({ 'x-some-header': '200' })).toBeUndefined();
  });

  it('prefers the newer name', () => {
    expect(sloTtftMsFromHeaders({ 'x-slo-ttft-ms': '50', 'x-llm-d-slo-ttft-ms': '200' })).toBe(200);
  });
});
