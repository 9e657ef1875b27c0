import { describe, expect, it } from 'vitest';
import { checkAnswer, isPuttingOff, type ServerAnswer } from '../../src/gate/server-answer.js';
import { FlowConfigError } from '../../src/index.js';

function issuesOf(answer: unknown): FlowConfigError['issues'] {
  try {
    checkAnswer(answer as ServerAnswer);
  } catch (error) {
    if (error instanceof FlowConfigError) return error.issues;
    throw error;
  }
  return [];
}

describe('an answer of a server', () => {
  it.each([[100], [200], [599]])('may have status %d', (status) => {
    for (const headers of [{}, new Headers()]) expect(() => checkAnswer({ status, headers })).not.toThrow();
  });

  it.each([[99], [600], [200.5], [Number.NaN], ['200'], [undefined]])('cannot have status %s', (status) => {
    expect(issuesOf({ status, headers: {} })).toEqual([
      { path: 'status', expected: 'an HTTP status, an integer from 100 to 599', got: expect.any(String) },
    ]);
  });

  it.each([
    [undefined, 'nothing'],
    [null, 'null'],
    ['retry-after: 3', '"retry-after: 3" (string)'],
  ])('cannot have headers %j', (headers, got) => {
    expect(issuesOf({ status: 200, headers })).toEqual([
      { path: 'headers', expected: 'Headers, or an object of headers', got },
    ]);
  });

  it('is rejected with everything that is wrong, by the name of the call', () => {
    expect(issuesOf({ status: 0 }).map(({ path }) => path)).toEqual(['status', 'headers']);
    expect(() => checkAnswer({ status: 0, headers: {} })).toThrow('lease.answered: status: expected an HTTP status');
  });

  it.each([
    [428, false],
    [429, true],
    [430, false],
    [503, false],
    [528, false],
    [529, true],
  ])('with status %d puts its caller off: %s', (status, isOff) => {
    expect(isPuttingOff({ status, headers: {} })).toBe(isOff);
  });
});
