import { describe, expect, it } from 'vitest';
import { checkAdapter } from '../../../src/adapters/http/adapter-options.js';
import { FlowConfigError } from '../../../src/index.js';

function issuesOf(options: object): readonly { path: string; expected: string; got: string }[] {
  try {
    checkAdapter({ enqueue: () => new Promise(() => {}) }, options);
    return [];
  } catch (error) {
    if (error instanceof FlowConfigError) return error.issues;
    throw error;
  }
}

describe('adapter options', () => {
  it('all of them at once', () => {
    const valid = {
      trust: () => true,
      objectives: new Map(),
      defaultFairnessId: 'anonymous',
      classify: () => ({ fairnessId: 'a' }),
      byteSize: () => 0,
      unknownBodyBytes: 0,
      readAheadBytes: 0,
      maxRequestBytes: 1,
      onDrop: 'throw',
      releaseOn: 'manual',
      context: { run: () => {} },
      skip: () => false,
      contract: 'llm-d',
      body: 'openai',
      maxRetryAfterSeconds: 1,
      hasEndpoints: () => true,
      random: Math.random,
    };
    expect(issuesOf(valid)).toEqual([]);
    expect(issuesOf(Object.fromEntries(Object.keys(valid).map((name) => [name, undefined])))).toEqual([]);
  });

  it.each([
    [{ trust: 'yes' }, 'trust', 'true, false or a function that answers at once', '"yes" (string)'],
    [{ objectives: null }, 'objectives', 'a Map or an object of priorities by name', 'null'],
    [{ defaultFairnessId: '' }, 'defaultFairnessId', 'a string that is not empty', '"" (string)'],
    [{ unknownBodyBytes: -1 }, 'unknownBodyBytes', 'an integer from 0 up', '-1 (number)'],
    [{ unknownBodyBytes: Number.NaN }, 'unknownBodyBytes', 'an integer from 0 up', 'NaN (number)'],
    [{ onDrop: 'ignore' }, 'onDrop', 'one of "respond", "throw"', '"ignore" (string)'],
    [{ context: {} }, 'context', 'an AsyncLocalStorage', 'an object with keys (none)'],
    [{ releaseOn: 'finish' }, 'releaseOn', 'one of "response-end", "manual"', '"finish" (string)'],
    [
      { contract: 'llmd' },
      'contract',
      'one of "gateway-api", "llm-d", "dynamo" (did you mean "llm-d"?), or a function',
      '"llmd" (string)',
    ],
    [{ body: {} }, 'body', 'one of "problem", "openai", or a function', 'an object with keys (none)'],
    [{ maxRetryAfterSeconds: 0 }, 'maxRetryAfterSeconds', 'an integer from 1 up', '0 (number)'],
  ])('%o is refused', (options, path, expected, got) => {
    expect(issuesOf(options)).toEqual([{ path, expected, got }]);
  });

  it('a misspelt option is rejected, and every problem is listed', () => {
    const [skip, trsut] = issuesOf({ trsut: true, skip: 1 });
    expect(skip?.path).toBe('skip');
    expect(trsut).toMatchObject({ path: 'trsut', expected: expect.stringContaining('(did you mean "trust"?)') });
  });
});
