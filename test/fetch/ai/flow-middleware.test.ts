/** The AI SDK with the middleware, against a model server on a real socket. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, type LanguageModel, streamText, wrapLanguageModel } from 'ai';
import { describe, expect, it } from 'vitest';
import { type FlowMiddlewareOptions, flowMiddleware, type ModelRequest } from '../../../src/fetch/ai/index.js';
import {
  concurrencyDetector,
  FlowControlError,
  FlowController,
  type FlowControllerOptions,
  FlowEvictedError,
  inFlightEviction,
} from '../../../src/index.js';
import { until } from '../../integration/support/until.js';
import { expectIdle } from '../flow.js';
import { hang, inTurn, type ModelServer, refuse, sendText, serve, stall, startModelServer } from '../model-server.js';

interface Setup {
  readonly flow: FlowController<ModelRequest>;
  readonly model: LanguageModel;
}

function gated(
  { url }: ModelServer,
  options: FlowMiddlewareOptions = {},
  controller: Partial<FlowControllerOptions<ModelRequest>> = {},
): Setup {
  const flow = new FlowController<ModelRequest>({
    saturationDetector: concurrencyDetector({ maxConcurrency: 1 }),
    ...controller,
  });
  const provider = createOpenAICompatible({ name: 'local', baseURL: `${url}/v1`, includeUsage: true });
  return {
    flow,
    model: wrapLanguageModel({
      model: provider.chatModel('llama'),
      middleware: flowMiddleware(flow, { random: () => 0, ...options }),
    }),
  };
}

/** The text, or the error, of a stream. */
async function read(model: LanguageModel, more: Partial<Parameters<typeof streamText>[0]> = {}): Promise<string> {
  let text = '';
  const { fullStream } = streamText({ model, prompt: 'hello', maxRetries: 0, onError() {}, ...more } as Parameters<
    typeof streamText
  >[0]);
  for await (const part of fullStream) {
    if (part.type === 'text-delta') text += part.text;
    if (part.type === 'error') throw part.error;
  }
  return text;
}

describe('flowMiddleware', () => {
  it('lets calls through one after the other, and charges what they cost', async () => {
    const server = await startModelServer();
    const setup = gated(server);
    const usages: object[] = [];
    setup.flow.on('released', ({ lease }) => usages.push(lease.usage));
    const answers = await Promise.all([generateText({ model: setup.model, prompt: 'hello' }), read(setup.model)]);
    expect([answers[0].text, answers[1]]).toEqual(['served', 'served']);
    expect(usages).toEqual([
      { promptTokens: 7, completionTokens: 2, cachedPromptTokens: 0 },
      { promptTokens: 7, completionTokens: 2, cachedPromptTokens: 0 },
    ]);
    await expectIdle(setup);
  });

  it('takes tenant and priority from classify, the options of the call, the context, in that order', async () => {
    const storage = new AsyncLocalStorage<{ fairnessId: string; priority: number }>();
    const keys: unknown[] = [];
    for (const classify of [undefined, () => ({ fairnessId: 'from-classify' })]) {
      const setup = gated(await startModelServer(), { context: storage, classify });
      setup.flow.on('dispatched', ({ lease, item }) =>
        keys.push([lease.fairnessId, lease.priority, item.request.model]),
      );
      await generateText({ model: setup.model, prompt: 'hello' });
      await storage.run({ fairnessId: 'from-context', priority: 5 }, () =>
        generateText({ model: setup.model, prompt: 'hello' }),
      );
      const providerOptions = { headgate: { fairnessId: 'from-options' } };
      await storage.run({ fairnessId: 'from-context', priority: 6 }, () =>
        generateText({ model: setup.model, prompt: 'hello', providerOptions }),
      );
    }
    expect(keys).toEqual([
      ['default-flow', 0, 'llama'],
      ['from-context', 5, 'llama'],
      ['from-options', 6, 'llama'],
      ['from-classify', 0, 'llama'],
      ['from-classify', 5, 'llama'],
      ['from-classify', 6, 'llama'],
    ]);
  });

  it.each([
    ['before the answer', hang],
    ['while it streams', stall],
  ])('gives the seat back when the call aborts %s', async (_when, behave) => {
    const server = await startModelServer(behave);
    const setup = gated(server);
    const abort = new AbortController();
    const call = read(setup.model, { abortSignal: abort.signal });
    await until('the server was asked', () => server.asked.length === 1);
    abort.abort();
    await Promise.allSettled([call]);
    await expectIdle(setup);
    await until('the server was left', () => server.asked[0]!.wasLeft);
  });

  it('gives the seat back when the server breaks off or is not there', async () => {
    const server = await startModelServer((asked) => {
      stall(asked);
      setTimeout(() => asked.res.destroy(), 1);
    });
    const setup = gated(server);
    await expect(read(setup.model)).rejects.toThrow();
    await expectIdle(setup);
    const gone = gated({ url: 'http://127.0.0.1:1' } as ModelServer);
    await expect(read(gone.model)).rejects.toThrow();
    await expectIdle(gone);
  });

  it('serves a call later that was evicted before its answer, and breaks off one that streams', async () => {
    for (const [behave, isServed] of [
      [hang, true],
      [stall, false],
    ] as const) {
      const server = await startModelServer(inTurn(behave, serve));
      const setup = gated(server, {}, { eviction: inFlightEviction() });
      const chunks: string[] = [];
      const onChunk = ({ chunk }: { chunk: { type: string } }): void => void chunks.push(chunk.type);
      const batch = read(setup.model, { onChunk, providerOptions: { headgate: { priority: -1 } } });
      const ended = isServed
        ? expect(batch).resolves.toBe('served')
        : expect(batch).rejects.toBeInstanceOf(FlowEvictedError);
      await until('it runs', () => server.asked.length === 1 && (isServed || chunks.includes('text-delta')));
      expect(await read(setup.model, { providerOptions: { headgate: { priority: 1 } } })).toBe('served');
      await ended;
      await expectIdle(setup);
    }
  });

  it('tells a drop so that the SDK tries again by itself', async () => {
    const server = await startModelServer(stall);
    let rejected = 0;
    const abort = new AbortController();
    const setup = gated(
      server,
      {},
      {
        admission: {
          type: 'no-waiting',
          admit: (_request, _key, view) => (view.saturation() < 1 ? 'admit' : { reason: 'the seat is taken' }),
        },
      },
    );
    const first = read(setup.model, { abortSignal: abort.signal });
    await until('the seat is taken', () => server.asked.length === 1);
    const error: unknown = await generateText({ model: setup.model, prompt: 'hello', maxRetries: 0 }).catch(
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(FlowControlError);
    expect(error).toMatchObject({ statusCode: 429, isRetryable: true, responseHeaders: { 'retry-after-ms': '1000' } });
    server.behave = serve;
    setup.flow.on('dropped', () => {
      rejected += 1;
      abort.abort();
    });
    expect((await generateText({ model: setup.model, prompt: 'hello' })).text).toBe('served');
    expect(rejected).toBe(1);
    await Promise.allSettled([first]);
    await expectIdle(setup);
  });

  it('tells detectors what the server answered, and waits again where one learns from a refusal', async () => {
    const server = await startModelServer(inTurn(refuse(429, { 'x-ratelimit-remaining-requests': '0' }), serve));
    const statuses: number[] = [];
    const setup = gated(
      server,
      {},
      {
        saturationDetector: {
          type: 'learning',
          saturation: () => 0,
          answered: (_endpoint, _nowMs, _seat, { status }) => statuses.push(status),
        },
      },
    );
    expect((await generateText({ model: setup.model, prompt: 'hello', maxRetries: 0 })).text).toBe('served');
    expect(statuses).toEqual([429, 200]);
    await expectIdle(setup);
  });

  it('reports tokens while they stream', async () => {
    const server = await startModelServer(stall);
    const setup = gated(server);
    const abort = new AbortController();
    const call = read(setup.model, { abortSignal: abort.signal });
    await until('a first token is reported', () => setup.flow.stats().inFlight === 1 && server.asked.length === 1);
    for (let i = 0; i < 40; i++) sendText(server.asked[0]!, 'x');
    let completionTokens = 0;
    setup.flow.on('released', ({ usage }) => {
      completionTokens = usage.completionTokens;
    });
    server.asked[0]!.res.end();
    await Promise.allSettled([call]);
    await expectIdle(setup);
    expect(completionTokens).toBe(41);
  });

  it('is told at once what cannot be right', () => {
    expect(() => flowMiddleware(undefined as never)).toThrow('a FlowController');
    expect(() => flowMiddleware(new FlowController({ saturationDetector: () => 0 }), { maxRetries: -1 })).toThrow(
      'maxRetries',
    );
  });
});
