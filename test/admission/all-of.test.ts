import { describe, expect, it } from 'vitest';
import { allOf } from '../../src/admission/all-of.js';
import { tokenBucket } from '../../src/admission/token-bucket.js';
import { admissionView } from '../support/pools.js';
import { scripted, standard } from './support.js';

const view = admissionView();

describe('allOf', () => {
  it('admits what all admit, asking in order', () => {
    const log: string[] = [];
    expect(allOf(scripted('a', 'admit', log), scripted('b', 'admit', log)).admit({}, standard, view)).toBe('admit');
    expect(log).toEqual(['a asked', 'b asked']);
    expect(allOf().admit({}, standard, view)).toBe('admit');
  });

  it('stops at the first refusal, names its policy, and gives the request back to those before', () => {
    const log: string[] = [];
    const policies = [
      scripted('a', 'admit', log),
      scripted('b', 'admit', log),
      scripted('c', { reason: 'no' }, log),
      scripted('d', 'admit', log),
    ];
    expect(allOf(...policies).admit({}, standard, view)).toEqual({ reason: 'no', policy: 'c' });
    expect(log).toEqual(['a asked', 'b asked', 'c asked', 'b released', 'a released']);
  });

  it('keeps a name that the refusal has already', () => {
    const refusal = allOf(allOf(scripted('inner', { reason: 'no' }))).admit({}, standard, view);
    expect(refusal).toEqual({ reason: 'no', policy: 'inner' });
  });

  it('tells all of them of the end', () => {
    const log: string[] = [];
    allOf(scripted('a', 'admit', log), { type: 'silent', admit: () => 'admit' }, scripted('b', 'admit', log)).released?.({}, standard, {
      promptTokens: 1,
      completionTokens: 1,
    });
    expect(log).toEqual(['a released with 2 tokens', 'b released with 2 tokens']);
  });

  it('takes both of two buckets or none', () => {
    const requests = tokenBucket({ capacity: 10, cost: () => 1 });
    const tokens = tokenBucket({ capacity: 1000 });
    const policy = allOf(requests, tokens);
    policy.admit({ tokens: 900 }, standard, view);
    expect(policy.admit({ tokens: 200 }, standard, view)).toMatchObject({ policy: 'token-bucket', retryAfterMs: 100 });
    expect([requests.tokens, tokens.tokens]).toEqual([9, 100]);
  });

  it('asks the others when one throws; without a refusal the error is thrown, and all hold the request', () => {
    const log: string[] = [];
    const broken = scripted('broken', new Error('broken'), log);
    expect(() => allOf(scripted('a', 'admit', log), broken, scripted('b', 'admit', log)).admit({}, standard, view)).toThrow('broken');
    expect(log).toEqual(['a asked', 'broken asked', 'b asked']);
    expect(allOf(broken, scripted('b', { reason: 'no' })).admit({}, standard, view)).toEqual({ reason: 'no', policy: 'b' });
  });

  it('tells the others of the end when one throws', () => {
    const log: string[] = [];
    const broken = {
      type: 'broken',
      admit: () => 'admit' as const,
      released: () => {
        throw new Error('broken');
      },
    };
    expect(() => allOf(broken, scripted('b', 'admit', log)).released?.({}, standard, undefined)).toThrow('broken');
    expect(log).toEqual(['b released']);
  });

  it('refuses what is no policy', () => {
    expect(() => allOf(scripted('a', 'admit'), {} as never)).toThrow('allOf: 2 problems\n  [1].type');
  });
});
