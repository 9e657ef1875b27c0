import { describe, expect, it } from 'vitest';
import { uncachedInputTokens } from '../../src/endpoints/token-estimator.js';
import { FlowConfigError, tokenEstimator } from '../../src/index.js';

const withOutput = { addEstimatedOutputTokens: true };

describe('tokenEstimator', () => {
  it('books the prompt alone unless asked for more', () => {
    expect(tokenEstimator()({ inputTokens: 7 })).toBe(7);
  });

  it('adds one and a half times the prompt for the answer', () => {
    const estimate = tokenEstimator(withOutput);
    expect([0, 1, 4, 10].map((inputTokens) => estimate({ inputTokens }))).toEqual([0, 3, 10, 25]);
  });

  it('lets the lower cap win, 0 included; negative ones and none are no caps', () => {
    const estimate = tokenEstimator({ ...withOutput, maxEstimatedOutputTokens: 8 });
    expect(estimate({ inputTokens: 10 })).toBe(18);
    expect(estimate({ inputTokens: 10, maxOutputTokens: 3 })).toBe(13);
    expect(estimate({ inputTokens: 10, maxOutputTokens: 0 })).toBe(10);
    expect(estimate({ inputTokens: 10, maxOutputTokens: -1 })).toBe(18);
    expect(estimate({ inputTokens: 10, maxOutputTokens: null })).toBe(18);
  });

  it('leaves out what is cached, but estimates the answer from the whole prompt', () => {
    const estimate = tokenEstimator(withOutput);
    expect(estimate({ inputTokens: 10, prefix: { blockSize: 4, totalBlocks: 2, matchedBlocks: 2 } })).toBe(2 + 15);
  });

  it('rejects wrong options', () => {
    expect(() => tokenEstimator({ outputRatio: -1 })).toThrow(FlowConfigError);
    expect(() => tokenEstimator({ maxEstimatedOutputTokens: -1 })).toThrow(FlowConfigError);
  });
});

describe('uncachedInputTokens', () => {
  it('counts the blocks that do not match and what lies beyond the blocks', () => {
    expect(uncachedInputTokens(8, { blockSize: 4, totalBlocks: 2, matchedBlocks: 1 })).toBe(4);
    expect(uncachedInputTokens(11, { blockSize: 4, totalBlocks: 2, matchedBlocks: 0 })).toBe(11);
    expect(uncachedInputTokens(11, { blockSize: 4, totalBlocks: 2, matchedBlocks: 2 })).toBe(3);
  });

  it('is never negative, whatever the index says', () => {
    expect(uncachedInputTokens(8, { blockSize: 4, totalBlocks: 2, matchedBlocks: 5 })).toBe(0);
    expect(uncachedInputTokens(-3)).toBe(0);
  });
});
