// @ts-check
// The handlers of Next.js, SvelteKit and Remix with one queue, which outlives the reload of their module. The program
// loads itself a second time, as a development server does after a change.
import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { concurrencyDetector, FlowController } from 'headgate';
import { flowControl, relay } from 'headgate/web';

/** @type {typeof globalThis & { flow?: FlowController<any> }} */
const kept = globalThis;
/** The model server. @type {(url: string, init: RequestInit) => Promise<Response>} */
const fetch = async (_url, { body }) => {
  await delay(10);
  return Response.json({ echo: await new Response(body).text() });
};

// lib/flow.js
kept.flow ??= new FlowController({ saturationDetector: concurrencyDetector({ maxConcurrency: 1 }) });
const inTurn = flowControl(kept.flow, {
  classify: (request) => ({ fairnessId: request.headers.get('x-team') ?? 'anonymous' }),
});

// Next.js, app/v1/chat/completions/route.js
/** @param {Request} request */
export const POST = (request) =>
  inTurn(request, async (request, { signal }) => {
    const body = await request.text();
    return relay(fetch('http://localhost:8000/v1/chat/completions', { method: 'POST', body, signal }), request);
  });

// SvelteKit, src/hooks.server.js: for every route
/** @param {{ event: { request: Request }, resolve: (event: object) => Promise<Response> }} input */
export const handle = ({ event, resolve }) => inTurn(event.request, () => resolve(event));

// Remix and React Router, app/routes/chat.js
/** @param {{ request: Request }} args */
export const action = ({ request }) => inTurn(request, async (request) => Response.json(await request.json()));

if (!import.meta.url.endsWith('?again')) {
  const again = await import(`${import.meta.url}?again`);
  const ask = () => new Request('http://localhost/v1/chat/completions', { method: 'POST', body: '{"a":1}' });
  let most = 0;
  kept.flow.on('dispatched', () => {
    most = Math.max(most, kept.flow?.stats().inFlight ?? 0);
  });
  const answers = await Promise.all([
    POST(ask()),
    again.POST(ask()),
    handle({ event: { request: ask() }, resolve: async () => new Response('resolved') }),
    again.action({ request: ask() }),
  ]);
  const texts = await Promise.all(answers.map((answer) => answer.text()));
  assert.deepEqual(texts, ['{"echo":"{\\"a\\":1}"}', '{"echo":"{\\"a\\":1}"}', 'resolved', '{"a":1}']);
  assert.notEqual(again.POST, POST);
  assert.equal(most, 1);
  console.log('The handlers of a module and of its reload shared one seat.');
  await kept.flow.close();
}
