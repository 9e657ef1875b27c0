/** The middleware with each release of the AI SDK that it is for, around a model of a specification that both know. */
import * as ai from 'ai';
import * as ai6 from 'ai6';
import { describe, expect, it } from 'vitest';
import { flowMiddleware, type ModelRequest } from '../../../src/fetch/ai/index.js';
import { concurrencyDetector, FlowController, type Usage } from '../../../src/index.js';
import { until } from '../../integration/support/until.js';
import { expectIdle } from '../flow.js';

type Model = Extract<ai6.LanguageModel, { readonly specificationVersion: 'v3' }>;

const usage = {
  inputTokens: { total: 7, noCache: 4, cacheRead: 3, cacheWrite: undefined },
  outputTokens: { total: 2, text: 2, reasoning: undefined },
};
const finishReason = { unified: 'stop', raw: 'stop' } as const;

/** Says `served`. */
function model(): Model {
  return {
    specificationVersion: 'v3',
    provider: 'local',
    modelId: 'llama',
    supportedUrls: {},
    doGenerate: async () => ({ content: [{ type: 'text', text: 'served' }], finishReason, usage, warnings: [] }),
    doStream: async () => ({
      stream: new ReadableStream({
        start(controller) {
          controller.enqueue({ type: 'stream-start', warnings: [] });
          controller.enqueue({ type: 'text-start', id: '1' });
          for (const delta of ['ser', 'ved']) controller.enqueue({ type: 'text-delta', id: '1', delta });
          controller.enqueue({ type: 'text-end', id: '1' });
          controller.enqueue({ type: 'finish', finishReason, usage });
          controller.close();
        },
      }),
    }),
  };
}

function gated() {
  const flow = new FlowController<ModelRequest>({ saturationDetector: concurrencyDetector({ maxConcurrency: 1 }) });
  const told: Usage[] = [];
  flow.on('released', ({ lease }) => told.push(lease.usage));
  return { flow, told };
}

const cost = { promptTokens: 7, completionTokens: 2, cachedPromptTokens: 3 };

describe.each(['ai', 'ai6'])('%s', (release) => {
  const isFirst = release === 'ai6';

  it('has its calls wait for their turn, and charges what they cost', async () => {
    const { flow, told } = gated();
    const middleware = flowMiddleware(flow);
    const request = { prompt: 'hello', providerOptions: { headgate: { fairnessId: 'acme' } } };
    const texts = isFirst
      ? await (async () => {
          const wrapped = ai6.wrapLanguageModel({ model: model(), middleware });
          const { text } = await ai6.generateText({ model: wrapped, ...request });
          return [text, await ai6.streamText({ model: wrapped, ...request }).text];
        })()
      : await (async () => {
          const wrapped = ai.wrapLanguageModel({ model: model(), middleware });
          const { text } = await ai.generateText({ model: wrapped, ...request });
          return [text, await ai.streamText({ model: wrapped, ...request }).text];
        })();
    expect(texts).toEqual(['served', 'served']);
    await expectIdle({ flow });
    expect(told).toEqual([cost, cost]);
  });

  it('gets the seat of a stream back that nobody reads, once the model has ended', async () => {
    const { flow, told } = gated();
    const options = { model: model(), middleware: flowMiddleware(flow) };
    const wrapped = isFirst ? ai6.wrapLanguageModel(options) : ai.wrapLanguageModel(options);
    const kept = await wrapped.doStream({ prompt: [] });
    await until('the seat is back', () => flow.stats().inFlight === 0);
    expect([told, kept.stream.locked]).toEqual([[cost], false]);
  });
});
