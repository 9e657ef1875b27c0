import { describe, expect, it } from 'vitest';
import {
  fairnessIdHeader,
  type HeaderSource,
  headerValue,
  stripFlowHeaders,
} from '../../../src/adapters/http/index.js';

const newer = 'x-llm-d-inference-fairness-id';
const older = 'x-gateway-inference-fairness-id';

describe('headerValue', () => {
  it.each<[what: string, headers: HeaderSource, expected: string | undefined]>([
    ['nothing', {}, undefined],
    ['the newer name', { [newer]: 'a' }, 'a'],
    ['the older name', { [older]: 'a' }, 'a'],
    ['both: the newer wins', { [older]: 'old', [newer]: 'new' }, 'new'],
    ['an empty newer name: the older counts', { [newer]: '', [older]: 'old' }, 'old'],
    ['a blank newer name: the older counts', { [newer]: '  ', [older]: 'old' }, 'old'],
    ['both empty', { [newer]: '', [older]: '' }, undefined],
    ['blanks around the value', { [newer]: ' a ' }, 'a'],
    ['another case', { 'X-LLM-D-Inference-Fairness-ID': 'a' }, 'a'],
    ['another case of the older name', { 'X-Gateway-Inference-Fairness-Id': 'a' }, 'a'],
    ['an array', { [newer]: ['a', 'b'] }, 'a, b'],
    ['undefined', { [newer]: undefined }, undefined],
    ['web headers', new Headers({ 'X-LLM-D-Inference-Fairness-Id': 'a' }), 'a'],
    ['web headers, older name', new Headers({ [newer]: '', [older]: 'old' }), 'old'],
    [
      'web headers, appended',
      new Headers([[newer, 'a'] as const, [newer, 'b'] as const].map(([k, v]) => [k, v])),
      'a, b',
    ],
    ['a header called get', { get: 'a' }, undefined],
  ])('%s', (_, headers, expected) => {
    expect(headerValue(headers, fairnessIdHeader)).toBe(expected);
  });
});

describe('stripFlowHeaders', () => {
  it('copies a record without the control headers, in any case', () => {
    const headers = {
      'X-Gateway-Inference-Objective': 'x',
      [newer]: 'y',
      'x-gateway-destination-endpoint': 'z',
      accept: '*/*',
      'Content-Length': '3',
    };
    expect(stripFlowHeaders(headers)).toEqual({ accept: '*/*', 'Content-Length': '3' });
    expect(headers).toHaveProperty(newer, 'y');
  });

  it('copies web headers without the control headers', () => {
    const headers = new Headers({
      [older]: 'x',
      'x-llm-d-request-dropped-reason': 'y',
      accept: '*/*',
      'content-length': '3',
    });
    expect([...stripFlowHeaders(headers)]).toEqual([
      ['accept', '*/*'],
      ['content-length', '3'],
    ]);
    expect(headers.get(older)).toBe('x');
  });
});
