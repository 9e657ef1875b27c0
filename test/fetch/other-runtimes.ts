/**
 * A program for Bun, Deno and Node, bundled by scripts/other-runtimes.mjs: calls through `headgate/fetch`, by hand and
 * by the OpenAI client, to the model server at the address that it is given. It fails unless every seat comes back.
 */
import OpenAI from 'openai';
import { flowMiddleware } from '../../src/fetch/ai/index.js';
import { flowFetch } from '../../src/fetch/index.js';
import { concurrencyDetector, FlowController } from '../../src/index.js';

const url = process.argv[2] ?? '';
const flow = new FlowController({ saturationDetector: concurrencyDetector({ maxConcurrency: 1 }) });
const fetch = flowFetch(flow, { classify: () => ({ fairnessId: 'acme' }) });
const openai = new OpenAI({ apiKey: 'key', baseURL: `${url}/v1`, fetch, maxRetries: 0 });
const question = { model: 'm', messages: [{ role: 'user', content: 'hello' }] } as const;

function check(what: string, got: unknown, expected: unknown): void {
  if (JSON.stringify(got) !== JSON.stringify(expected))
    throw new Error(`${what}: ${JSON.stringify(got)}, not ${JSON.stringify(expected)}`);
}

async function streamed(): Promise<string> {
  let text = '';
  for await (const { choices } of await openai.chat.completions.create({
    ...question,
    messages: [...question.messages],
    stream: true,
  }))
    text += choices[0]?.delta.content ?? '';
  return text;
}

async function call(init: RequestInit = {}): Promise<Response> {
  return fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    body: JSON.stringify({ ...question, stream: true }),
    ...init,
  });
}

check('three streams, one after the other', await Promise.all([streamed(), streamed(), streamed()]), [
  'served',
  'served',
  'served',
]);
check('seats after the streams', flow.stats().inFlight, 0);

const left = await call();
const abort = new AbortController();
const waiting = call({ signal: abort.signal }).then(
  () => 'answered',
  (error: Error) => error.name,
);
const next = call();
abort.abort();
check('a caller that leaves the queue', await waiting, 'AbortError');
await left.body?.cancel();
check('the next one', (await (await next).text()).includes('[DONE]'), true);
check('what is left', [flow.stats().inFlight, flow.stats().waiting, flow.stats().dispatched], [0, 0, 5]);
check('the middleware', typeof flowMiddleware(flow).wrapStream, 'function');
console.info('ok');
process.exit(0);
