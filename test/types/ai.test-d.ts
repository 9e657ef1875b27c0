import type * as ai from 'ai';
import type * as ai6 from 'ai6';
import { describe, expectTypeOf, it } from 'vitest';
import { flowMiddleware } from '../../src/fetch/ai/index.js';
import type { FlowController, FlowGate } from '../../src/index.js';

declare const flow: FlowController;
declare const gate: FlowGate;

describe('headgate/ai', () => {
  it('is a middleware of the AI SDK, of 7 and of 6', () => {
    const middleware = flowMiddleware(flow);
    expectTypeOf(middleware).toExtend<ai.LanguageModelMiddleware>();
    expectTypeOf(middleware).toExtend<ai6.LanguageModelMiddleware>();
    expectTypeOf(
      flowMiddleware(gate, { classify: ({ prompt }, { modelId }) => ({ fairnessId: `${modelId}${prompt}` }) }),
    ).toExtend<ai6.LanguageModelMiddleware>();
  });
});
