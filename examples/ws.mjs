// @ts-check
// Responses over WebSocket: three agents keep their sockets open, and two turns run at a time. An idle socket costs no
// seat; an agent that hangs up gives its turn back.
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { explainWait, FlowController } from 'headgate';
import { flowTurns } from 'headgate/ws';
import { WebSocket, WebSocketServer } from 'ws';

/** @import { ServedTurn } from 'headgate/ws' */

/** @type {FlowController<import('headgate/http').HttpFlowRequest<import('headgate/ws').TurnEvent>>} */
const flow = new FlowController({ maxConcurrency: 2 });
const server = new WebSocketServer({ port: 0 });
await once(server, 'listening');

/** A model that says a word every 20 ms. @param {ServedTurn} turn */
async function serve({ event, send, signal }) {
  const response = { id: `resp_${event.fields.input}`, object: 'response' };
  await send({ type: 'response.created', response: { ...response, status: 'in_progress' } });
  for (const delta of ['Hold ', 'the ', 'turn.']) {
    await delay(20, undefined, { signal });
    await send({ type: 'response.output_text.delta', delta });
  }
  await send({ type: 'response.completed', response: { ...response, status: 'completed' } });
}

server.on('connection', (socket, req) =>
  flowTurns(flow, socket, {
    classify: () => ({ fairnessId: String(req.headers['x-agent']), priority: 0 }),
    serve,
    waiting: { after: 10, every: 10, place: (event) => explainWait(flow, ({ req }) => req === event) },
  }),
);

const address = server.address();
const url = `ws://localhost:${typeof address === 'object' ? address?.port : ''}`;

/** @param {string} name */
async function agent(name) {
  const socket = new WebSocket(url, { headers: { 'x-agent': name } });
  await once(socket, 'open');
  let text = '';
  socket.on('message', (data) => {
    const event = JSON.parse(String(data));
    text += event.delta ?? '';
    if (event.type === 'response.queued') console.log(`  ${name} waits, in place ${event.position}`);
    if (event.type === 'response.completed') console.log(`  ${name}: ${text}`);
  });
  return socket;
}

const ask = (/** @type {WebSocket} */ socket, /** @type {number} */ input) =>
  socket.send(JSON.stringify({ type: 'response.create', model: 'small', input }));

console.log('Three sockets are open, and two turns run at a time:');
const sockets = await Promise.all(['alice', 'bob', 'carol'].map(agent));
console.log(`  ${flow.stats().inFlight} seats are taken while all are idle`);
sockets.forEach(ask);
while (flow.stats().released < 3) await delay(1);

console.log('Alice hangs up in the middle of her turn:');
const [alice, bob, carol] = sockets;
if (alice !== undefined) ask(alice, 4);
while (flow.stats().inFlight === 0) await delay(1);
alice?.terminate();
while (flow.stats().inFlight > 0) await delay(1);
console.log(`  ${flow.stats().released} turns, ${flow.stats().inFlight} seats are taken`);

bob?.close();
carol?.close();
server.close();
await flow.close();
