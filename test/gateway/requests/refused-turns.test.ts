/** Turns that a server refuses, and sessions whose server is gone: what the client is told, and who is asked next. */
import { expect, it, onTestFinished } from 'vitest';
import { type RawData, WebSocketServer } from 'ws';
import { audit } from '../../../src/testing/index.js';
import { type Client, connect, type Event } from '../../adapters/ws/support.js';
import { until } from '../../integration/support/until.js';
import { fileOf, type Started, startGateway } from '../support/gateway.js';

const create = { type: 'response.create', model: 'm', input: 'hello' };

/** What a server does with a turn: the events that it sends, or the code that it closes with, or that it breaks off. */
type Answer = readonly object[] | number | 'breaks off';
interface Scripted {
  readonly url: string;
  readonly heard: Event[];
  readonly server: WebSocketServer;
}

/** Answers turn after turn as the script says; the last answer is that of all further turns. */
async function startScripted(script: readonly Answer[]): Promise<Scripted> {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1', perMessageDeflate: false });
  const heard: Event[] = [];
  let turns = 0;
  server.on('connection', (socket) => {
    socket.send(JSON.stringify({ type: 'session.created' }));
    socket.on('message', (data: RawData) => {
      const event: Event = JSON.parse(data.toString());
      heard.push(event);
      if (event.type !== 'response.create') return;
      const answer = script[Math.min(turns++, script.length - 1)];
      if (answer === 'breaks off') socket.terminate();
      else if (typeof answer === 'number') socket.close(answer);
      else for (const each of answer ?? []) socket.send(JSON.stringify(each));
    });
  });
  await new Promise((resolve) => server.once('listening', resolve));
  onTestFinished(() => {
    for (const socket of server.clients) socket.terminate();
    server.close();
  });
  const { port } = server.address() as { port: number };
  return { url: `http://127.0.0.1:${port}`, heard, server };
}

const response = { id: 'r' };
const created = { type: 'response.created', response };
const delta = { type: 'response.output_text.delta', response_id: 'r', delta: 'word' };
const completed = { type: 'response.completed', response };
const whole = [created, delta, completed];
const busy = {
  type: 'error',
  status: 503,
  error: { type: 'server_error', code: 'server_is_overloaded', message: 'no' },
};

/** `busy`, which is asked first, and `free`, which answers. */
async function startTwo(first: readonly Answer[], more: object = {}, second: readonly Answer[] = [whole]) {
  const servers = [await startScripted(first), await startScripted(second)] as const;
  const upstreams = [
    { id: 'busy', url: servers[0].url, weight: 8 },
    { id: 'free', url: servers[1].url },
  ];
  const started = await startGateway(fileOf(upstreams, more));
  const open = (path = '/v1/responses'): Promise<Client> =>
    connect(`${started.gateway.url.replace('http', 'ws')}${path}`);
  return { ...started, open, servers };
}

const linesOf = ({ log }: Pick<Started, 'log'>) =>
  log.filter(({ event }) => event === 'request').map(({ fields }) => fields);

it.each<[string, Answer]>([
  ['by an error with its status', [busy]],
  ['by an error whose code tells it', [{ type: 'error', error: { code: 'rate_limit_exceeded', message: 'later' } }]],
  [
    'by a response that failed before it began',
    [{ type: 'response.failed', response: { ...response, error: busy.error } }],
  ],
  ['by closing in order', 1013],
  ['by closing as if all were said', 1000],
])('a turn that a server refuses %s goes to another one, and its client sees none of it', async (_, refusal) => {
  const { open, gateway, log, servers } = await startTwo([refusal]);
  const client = await open();
  client.send({ ...create, event_id: 'mine' });
  await client.next('response.completed');
  const types = client.events.map(({ type }) => type).filter((type) => type !== 'session.created');
  expect(types).toEqual(['response.created', 'response.output_text.delta', 'response.completed']);
  expect(servers.map(({ heard }) => heard)).toEqual([
    [{ ...create, event_id: 'mine' }],
    [{ ...create, event_id: 'mine' }],
  ]);
  await until('logged', () => linesOf({ log }).length === 1);
  expect(linesOf({ log })[0]).toMatchObject({ endpoint: 'free', retries: 1, status: 200 });
  expect(log.filter(({ event }) => event === 'retry').map(({ fields }) => fields)).toMatchObject([
    { endpoint: 'busy', code: 'upstream_overloaded' },
  ]);
  const metrics = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
  expect(metrics).toContain('headgate_upstream_refusals_total{endpoint="busy"} 1');
  // The socket is at the other server from now on.
  client.send(create);
  await client.next('response.completed');
  await until('closed', () => servers[0].server.clients.size === 0);
  expect([servers[0].heard.length, servers[1].heard.length]).toEqual([1, 2]);
  expect(gateway.flow.stats()).toMatchObject({ inFlight: 0, waiting: 0, dispatched: 3, released: 3 });
  expect(audit(gateway.flow).violations).toEqual([]);
});

it.each<[string, Answer, object, string]>([
  ['of which something was passed on', [created, busy], {}, 'error'],
  ['that goes on from an answer of its server', [busy], { previous_response_id: 'before' }, 'error'],
  ['of a conversation', [busy], { conversation: 'c' }, 'error'],
  [
    'whose server says that the request is wrong',
    [{ ...busy, status: 400, error: { code: 'invalid_value' } }],
    {},
    'error',
  ],
  ['whose server breaks off, and may have worked on it', 'breaks off', {}, 'error'],
])('a turn %s goes to no other server', async (_, answer, more, told) => {
  const { open, gateway, servers, log } = await startTwo([answer]);
  const client = await open();
  client.send({ ...create, ...more });
  await client.next(told);
  await until('logged', () => linesOf({ log }).length === 1);
  expect([servers[0].heard.length, servers[1].heard.length]).toEqual([1, 0]);
  expect(gateway.flow.stats()).toMatchObject({ inFlight: 0, waiting: 0, dispatched: 1, released: 1 });
});

it('a refusal beside another turn of the socket is told, because that turn would be lost', async () => {
  const { open, servers, gateway } = await startTwo([[created, delta], [{ ...busy, stream_id: 'b' }]], {
    plugins: [{ type: 'concurrency-detector', parameters: { maxConcurrency: 2 } }],
  });
  const client = await open();
  client.send(create);
  await client.next('response.output_text.delta');
  client.send({ ...create, stream_id: 'b' });
  expect(await client.next('error')).toMatchObject({ stream_id: 'b', status: 503 });
  expect([gateway.flow.stats().inFlight, servers[1].heard.length]).toEqual([1, 0]);
});

it('a turn that all refuse hears the last of them, after retry.max', async () => {
  const { open, gateway, log, servers } = await startTwo([[busy]], { retry: { max: 1 } }, [[busy]]);
  const client = await open();
  client.send(create);
  expect(await client.next('error')).toMatchObject({ status: 503, error: { code: 'server_is_overloaded' } });
  await until('logged', () => linesOf({ log }).length === 1);
  expect(linesOf({ log })[0]).toMatchObject({ endpoint: 'free', retries: 1, code: 'upstream_overloaded' });
  expect(servers.map(({ heard }) => heard.length)).toEqual([1, 1]);
  expect(gateway.flow.stats()).toMatchObject({ inFlight: 0, waiting: 0, dispatched: 2, released: 2 });
});

it('a refusal that says for how long keeps other requests from the server, and none moves where retries are off', async () => {
  const told = { ...busy, status: 429, headers: { 'retry-after-ms': 60_000 } };
  const { open, gateway, servers } = await startTwo([[told]], { retry: { enabled: false } });
  const client = await open();
  client.send(create);
  expect(await client.next('error')).toMatchObject({ status: 429 });
  expect(servers[1].heard).toEqual([]);
  const { overloadedUntilMs = 0 } = gateway.pool.get('busy') ?? {};
  expect(overloadedUntilMs - gateway.pool.now()).toBeGreaterThan(30_000);
});

it('under a quota-detector a turn waits in its place until the server takes requests again', async () => {
  const later = {
    type: 'error',
    status: 429,
    headers: { 'retry-after-ms': 50 },
    error: { code: 'rate_limit_exceeded' },
  };
  const only = await startScripted([[later], whole]);
  const { gateway, log } = await startGateway({
    ...fileOf([only.url]),
    plugins: [
      {
        type: 'quota-detector',
        parameters: { groups: [{ learn: false, quotas: [{ unit: 'requests', limit: 100 }] }] },
      },
    ],
    flowControl: { saturationDetector: { pluginRef: 'quota-detector' } },
  });
  const client = await connect(`${gateway.url.replace('http', 'ws')}/v1/responses`);
  client.send(create);
  await client.next('response.completed');
  await until('logged', () => linesOf({ log }).length === 1);
  expect(client.events.filter(({ type }) => type === 'error')).toEqual([]);
  expect(only.heard).toHaveLength(2);
});

it('a client that leaves while its turn moves takes it along', async () => {
  const { open, gateway, servers } = await startTwo([[busy]], {}, [[]]);
  const client = await open();
  client.send(create);
  await until('it has moved', () => servers[1].heard.length === 1);
  client.socket.terminate();
  await until('given back', () => gateway.flow.stats().inFlight === 0);
  expect(audit(gateway.flow).violations).toEqual([]);
});

const session = '/v1/realtime';

it('a session of Realtime opens at another server where the first cannot be reached', async () => {
  const free = await startScripted([[]]);
  const upstreams = [
    { id: 'dead', url: 'http://127.0.0.1:1', weight: 8 },
    { id: 'free', url: free.url },
  ];
  const { gateway } = await startGateway(fileOf(upstreams));
  const client = await connect(`${gateway.url.replace('http', 'ws')}${session}`);
  await client.next('session.created');
  client.send({ type: 'conversation.item.create' });
  await until('heard', () => free.heard.length === 1);
});

it.each<[string, Answer, number]>([
  ['breaks off', 'breaks off', 1011],
  ['restarts', 1012, 1012],
])(
  'a session of Realtime whose server %s is told by an error, closed with %s, and its seat is given back',
  async (_, answer, code) => {
    const { open, gateway, log, servers } = await startTwo([answer]);
    const client = await open(session);
    await client.next('session.created');
    client.send({ type: 'response.create', event_id: 'mine' });
    const ofTurn = { error: { code: 'upstream_failed', event_id: 'mine' } };
    expect(await client.next('error')).toMatchObject(ofTurn);
    expect(await client.next('error')).toMatchObject({
      event_id: expect.any(String),
      error: { code: 'upstream_failed' },
    });
    await until('closed', () => client.closed !== undefined);
    expect(client.closed).toMatchObject({ code, reason: 'The model server closed its socket.' });
    await until('logged', () => linesOf({ log }).length === 1);
    expect([gateway.flow.stats().inFlight, servers[1].heard.length]).toEqual([0, 0]);
  },
);

it('a session of Realtime that is idle is told, too, when its server is gone', async () => {
  const { open, servers } = await startTwo([[]]);
  const client = await open(session);
  await client.next('session.created');
  for (const socket of servers[0].server.clients) socket.terminate();
  const { error } = await client.next('error');
  expect(error).toMatchObject({ type: 'server_error', code: 'upstream_failed' });
  await until('closed', () => client.closed !== undefined);
  expect(client.closed?.code).toBe(1011);
});

it('a session of Realtime ends its running response when the gateway drains, and then closes with 1012', async () => {
  const { open, gateway, servers } = await startTwo([[created, delta]], { drain: { waiting: '1s', streams: '5s' } });
  const client = await open(session);
  client.send({ type: 'response.create' });
  await client.next('response.output_text.delta');
  const closed = gateway.close();
  const done = JSON.stringify({ type: 'response.done', response: { ...response, status: 'completed' } });
  for (const socket of servers[0].server.clients) socket.send(done);
  await client.next('response.done');
  await until('closed', () => client.closed !== undefined);
  expect(client.closed?.code).toBe(1012);
  expect(await closed).toMatchObject({ inFlight: 0 });
});
