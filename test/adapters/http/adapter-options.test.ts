import { describe, expect, it } from 'vitest';
import { checkAdapterOptions } from '../../../src/adapters/http/adapter-options.js';
import { FlowConfigError } from '../../../src/index.js';

function issuesOf(options: object): readonly { path: string; expected: string; got: string }[] {
  try {
    checkAdapterOptions(options);
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
      onDrop: 'throw',
      releaseOn: 'manual',
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
    [{ trust: 'yes' }, 'trust', 'true, false or a function', '"yes" (string)'],
    [{ objectives: null }, 'objectives', 'a Map or an object of priorities by name', 'null (object)'],
    [{ defaultFairnessId: '' }, 'defaultFairnessId', 'a string that is not empty', '"" (string)'],
    [{ unknownBodyBytes: -1 }, 'unknownBodyBytes', 'an integer from 0 up', '-1 (number)'],
    [{ unknownBodyBytes: Number.NaN }, 'unknownBodyBytes', 'an integer from 0 up', 'NaN (number)'],
    [{ onDrop: 'ignore' }, 'onDrop', '"respond" or "throw"', '"ignore" (string)'],
    [{ releaseOn: 'finish' }, 'releaseOn', '"response-end" or "manual"', '"finish" (string)'],
    [{ contract: 'llmd' }, 'contract', '"gateway-api", "llm-d", "dynamo" or a function', '"llmd" (string)'],
    [{ body: {} }, 'body', '"problem", "openai" or a function', '[object Object] (object)'],
    [{ maxRetryAfterSeconds: 0 }, 'maxRetryAfterSeconds', 'an integer from 1 up', '0 (number)'],
  ])('%o is refused', (options, path, expected, got) => {
    expect(issuesOf(options)).toEqual([{ path, expected, got }]);
  });

  it('a misspelt option is refused, and every problem is listed', () => {
    expect(issuesOf({ trsut: true, skip: 1 }).map(({ path }) => path)).toEqual(['trsut', 'skip']);
  });
});
