// Three tenants call one model through the OpenAI client. The model takes two requests at a time; the one who asks most
// does not get most. Run it: node examples/fetch.mjs
import { once } from 'node:events';
import { createServer } from 'node:http';
import { concurrencyDetector, FlowController } from 'headgate';
import { flowFetch } from 'headgate/fetch';
import OpenAI from 'openai';

const model = createServer((req, res) => {
  req.resume().on('end', () => {
    res.setHeader('content-type', 'text/event-stream');
    const chunk = (/** @type {{ content: string }} */ delta) =>
      res.write(`data: ${JSON.stringify({ object: 'chat.completion.chunk', choices: [{ index: 0, delta }] })}\n\n`);
    chunk({ content: 'ser' });
    setTimeout(() => {
      chunk({ content: 'ved' });
      res.end('data: [DONE]\n\n');
    }, 20);
  });
});
model.listen(0, '127.0.0.1');
await once(model, 'listening');
const { port } = /** @type {import('node:net').AddressInfo} */ (model.address());

const flow = new FlowController({ saturationDetector: concurrencyDetector({ maxConcurrency: 2 }) });
const openai = new OpenAI({
  baseURL: `http://127.0.0.1:${port}/v1`,
  apiKey: 'key',
  fetch: flowFetch(flow, { classify: ({ headers }) => ({ fairnessId: headers.get('x-tenant') ?? 'nobody' }) }),
});

/** @type {string[]} */
const order = [];
flow.on('dispatched', ({ lease }) => order.push(lease.fairnessId));

/** @param {string} tenant */
async function ask(tenant) {
  /** @type {OpenAI.ChatCompletionCreateParamsStreaming} */
  const question = { model: 'llama', messages: [{ role: 'user', content: 'hello' }], stream: true };
  let text = '';
  for await (const { choices } of await openai.chat.completions.create(question, { headers: { 'x-tenant': tenant } })) {
    text += choices[0]?.delta.content ?? '';
  }
  return text;
}

const greedy = Array.from({ length: 8 }, () => ask('greedy'));
const answers = await Promise.all([...greedy, ask('small'), ask('tiny')]);
console.log(
  `${answers.filter((text) => text === 'served').length} of ${answers.length} served, in the order ${order.join(', ')}`,
);
if (order.lastIndexOf('small') > 6 || order.lastIndexOf('tiny') > 6)
  throw new Error('the small tenants waited behind the greedy one');
await flow.close();
model.close();
