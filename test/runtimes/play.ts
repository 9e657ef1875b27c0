/**
 * What runs on Node, Bun, Deno and workerd alike, bundled from the built package by scripts/other-runtimes.mjs: a
 * controller, calls through `headgate/fetch` by hand and by the OpenAI client, `headgate/ai`, and a server of Hono.
 */
import { Hono } from 'hono';
import OpenAI from 'openai';
import { flowControl } from '../../src/adapters/hono/index.js';
import { flowMiddleware } from '../../src/fetch/ai/index.js';
import { flowFetch } from '../../src/fetch/index.js';
import { concurrencyDetector, FlowController, quotaDetector, virtualTokenCounter } from '../../src/index.js';

const question = { model: 'm', messages: [{ role: 'user' as const, content: 'hello' }] };

function check(what: string, got: unknown, expected: unknown): void {
  if (JSON.stringify(got) !== JSON.stringify(expected))
    throw new Error(`${what}: ${JSON.stringify(got)}, not ${JSON.stringify(expected)}`);
}

const oneSeat = () => new FlowController({ saturationDetector: concurrencyDetector({ maxConcurrency: 1 }) });

/** Priority, fairness and deadlines, on the timers of the runtime. */
async function core(): Promise<void> {
  const flow = new FlowController({
    saturationDetector: concurrencyDetector({ maxConcurrency: 1 }),
    constraints: [quotaDetector({ groups: [{ by: 'pool', quotas: [{ unit: 'requests', limit: 90, per: 1_000 }] }] })],
    defaultBand: { fairness: virtualTokenCounter() },
  });
  const order: string[] = [];
  const ask = (fairnessId: string, priority = 0): Promise<number> =>
    flow.run({ byteSize: 1 }, { fairnessId, priority }, () => order.push(fairnessId));
  const held = await flow.enqueue({ byteSize: 1 }, { fairnessId: 'first' });
  const all = [ask('hog'), ask('hog'), ask('polite'), ask('premium', 1)];
  const late = await flow.enqueue({ byteSize: 1, ttlMs: 20 }, { fairnessId: 'late' });
  check('a deadline', [late.type, late.type === 'Dispatched' ? '' : late.reason], ['EvictedTTL', 'ttl-expired']);
  if (held.type === 'Dispatched') held.lease.release();
  await Promise.all(all);
  check('the order', order, ['premium', 'hog', 'polite', 'hog']);
  await flow.close();
  check('after the end', flow.stats().inFlight, 0);
}

async function calls(url: string): Promise<void> {
  const flow = oneSeat();
  const fetch = flowFetch(flow, { classify: () => ({ fairnessId: 'acme' }) });
  const openai = new OpenAI({ apiKey: 'key', baseURL: `${url}/v1`, fetch, maxRetries: 0 });
  const streamed = async (): Promise<string> => {
    let text = '';
    for await (const { choices } of await openai.chat.completions.create({ ...question, stream: true }))
      text += choices[0]?.delta.content ?? '';
    return text;
  };
  const body = JSON.stringify({ ...question, stream: true });
  const call = (init: RequestInit = {}): Promise<Response> =>
    fetch(`${url}/v1/chat/completions`, { method: 'POST', body, ...init });
  const three = await Promise.all([streamed(), streamed(), streamed()]);
  check('three streams, one after the other', three, ['served', 'served', 'served']);
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
  const { inFlight, waiting: inQueue, dispatched } = flow.stats();
  check('what is left', [inFlight, inQueue, dispatched], [0, 0, 5]);
  check('the middleware', typeof flowMiddleware(flow).wrapStream, 'function');
}

async function server(): Promise<void> {
  const flow = oneSeat();
  const app = new Hono();
  app.use(flowControl(flow));
  app.get('/', (c) => c.text('served'));
  const answers = [app.request('/'), app.request('/'), app.request('/')].map(async (answer) => (await answer).text());
  check('three answers', await Promise.all(answers), ['served', 'served', 'served']);
  check('seats after the answers', [flow.stats().inFlight, flow.stats().dispatched], [0, 3]);
}

/** Against the model server at `url`. It fails unless every seat comes back. */
export async function play(url: string): Promise<void> {
  await core();
  await calls(url);
  await server();
}
