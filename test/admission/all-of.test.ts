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
    allOf(
      scripted('a', 'admit', log),
      { type: 'silent', admit: () => 'admit' },
      scripted('b', 'admit', log),
    ).released?.({}, standard, {
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
    expect(() =>
      allOf(scripted('a', 'admit', log), broken, scripted('b', 'admit', log)).admit({}, standard, view),
    ).toThrow('broken');
    expect(log).toEqual(['a asked', 'broken asked', 'b asked']);
    expect(allOf(broken, scripted('b', { reason: 'no' })).admit({}, standard, view)).toEqual({
      reason: 'no',
      policy: 'b',
    });
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

  it('throws the first of several errors', () => {
    const fail = (error: Error) => () => {
      throw error;
    };
    const [first, second] = [new Error('first'), new Error('second')];
    const policy = allOf(
      ...[first, second].map((error) => ({ type: 'broken', admit: fail(error), released: fail(error) })),
    );
    for (const call of [() => policy.admit({}, standard, view), () => policy.released?.({}, standard, undefined)]) {
      let thrown: unknown;
      try {
        call();
      } catch (error) {
        thrown = error;
      }
      expect(thrown).toBe(first);
    }
  });

  it.each([[null], [{ reason: 5 }], ['yes']])('leaves an answer that is no refusal to the controller: %j', (answer) => {
    expect(allOf(scripted('odd', answer as never)).admit({}, standard, view)).toBe(answer);
  });

  it('tells the instant of the decision to those that get the request back, and of the end to all', () => {
    const told: unknown[] = [];
    const keeping = {
      type: 'keeping',
      admit: () => 'admit' as const,
      released: (...given: unknown[]) => void told.push(given),
    };
    const policy = allOf(keeping, scripted('b', { reason: 'no' }));
    policy.admit('request', standard, admissionView([{}], { nowMs: 70 }));
    expect(told).toEqual([['request', standard, undefined, 70]]);
    const usage = { promptTokens: 1, completionTokens: 1 };
    policy.released?.('request', standard, usage, 80);
    expect(told[1]).toEqual(['request', standard, usage, 80]);
    expect(policy.type).toBe('all-of');
  });

  it('rejects what is no policy', () => {
    expect(() => allOf(scripted('a', 'admit'), {} as never)).toThrow('allOf: 2 problems\n  [1].type');
  });
});
