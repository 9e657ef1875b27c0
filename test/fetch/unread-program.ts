/** Asks twice and reads neither answer: `node unread-program.mjs HOW URL`. It has to end by itself. */
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { wrapLanguageModel } from 'ai';
import { Agent, request } from 'undici';
import { flowControl } from '../../src/adapters/undici/index.js';
import { flowMiddleware } from '../../src/fetch/ai/index.js';
import { flowFetch } from '../../src/fetch/index.js';
import { concurrencyDetector, FlowController } from '../../src/index.js';

const [how = '', url = ''] = process.argv.slice(2);
const saturationDetector = concurrencyDetector({ maxConcurrency: 1 });
const init = { method: 'POST', body: '{"model":"m"}' };

async function modelCall(): Promise<(url: string) => Promise<unknown>> {
  const provider = createOpenAICompatible({ name: 'local', baseURL: `${url}/v1` });
  const model = wrapLanguageModel({
    model: provider.chatModel('m'),
    middleware: flowMiddleware(new FlowController({ saturationDetector })),
  });
  return async () => model.doStream({ prompt: [{ role: 'user', content: [{ type: 'text', text: 'hello' }] }] });
}

function undiciCall(): (url: string) => Promise<unknown> {
  const dispatcher = new Agent().compose(flowControl(new FlowController({ saturationDetector })));
  return (target) => request(target, { dispatcher, method: 'POST', body: init.body });
}

const ask: (url: string, init: RequestInit) => Promise<unknown> =
  how === 'undici'
    ? undiciCall()
    : how === 'flowMiddleware'
      ? await modelCall()
      : how === 'flowFetch'
        ? flowFetch(new FlowController({ saturationDetector }))
        : fetch;
// Both are kept, so that the collector does not help.
const kept = [await ask(url, init)];
kept.push(await ask(url, init));
process.on('exit', () => {
  if (kept.length !== 2) process.exitCode = 1;
});
