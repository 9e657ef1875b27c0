/** Sockets of a gateway: real clients, real model servers, one seat for each server. */
import { once } from 'node:events';
import { type AddressInfo, createConnection, createServer } from 'node:net';
import OpenAI from 'openai';
import { OpenAIRealtimeWS } from 'openai/realtime/ws';
import { ResponsesWS } from 'openai/resources/responses/ws';
import { describe, expect, it, onTestFinished } from 'vitest';
import { WebSocket } from 'ws';
import { loadGatewayConfig } from '../../../src/gateway/index.js';
import { audit } from '../../../src/testing/index.js';
import { connect, startSockets } from '../../adapters/ws/support.js';
import { until } from '../../integration/support/until.js';
import { collectGarbage } from '../../support/collect-garbage.js';
import { fileOf, type Started, startGateway } from '../support/gateway.js';
import { startModelServer } from '../support/model-server.js';
import { startUpstream } from '../support/upstream.js';

const create = { type: 'response.create', model: 'default-model', input: 'hello', max_output_tokens: 3 };
const long = { ...create, max_output_tokens: undefined };
const keys = [
  { key: 'alice', tenant: 'alice', priority: 0 },
  { key: 'batch', tenant: 'batch', priority: -1 },
];

async function startAll(more: object = {}, servers = 1) {
  const models = await Promise.all(Array.from({ length: servers }, (_, i) => startModelServer(`m${i}`)));
  const file = fileOf(
    models.map(({ url }) => url),
    more,
  );
  const started = await startGateway(file);
  const open = (path = '/v1/responses', key = 'alice') =>
    connect(`${started.gateway.url.replace('http', 'ws')}${path}`, { authorization: `Bearer ${key}` });
  return { ...started, file, models, open };
}

/** A server whose responses go on until they are cancelled; `say` is their next token. */
async function startEndless(more: object = {}, maxConcurrency = 1) {
  const servers: ((event: object) => void)[] = [];
  const url = await startSockets((socket) => {
    const send = (event: object): void => socket.send(JSON.stringify(event));
    let serial = 0;
    servers.push(send);
    send({ type: 'session.created' });
    socket.on('message', (data) => {
      const { type } = JSON.parse(String(data));
      if (type === 'response.create') send({ type: 'response.created', response: { id: `r${++serial}` } });
      const response = { id: `r${serial}`, status: 'cancelled' };
      if (type === 'response.cancel') send({ type: 'response.done', response });
    });
  });
  const started = await startGateway(fileOf([url.replace('ws:', 'http:')], more, maxConcurrency));
  const open = (path = '/v1/responses') => connect(`${started.gateway.url.replace('http', 'ws')}${path}`);
  const say = (): void => {
    for (const send of servers) send({ type: 'response.output_text.delta', response_id: 'r1', delta: 'word' });
  };
  return { ...started, open, say };
}

const linesOf = ({ log }: Pick<Started, 'log'>) =>
  log.filter(({ event }) => event === 'request').map(({ fields }) => fields);

/** The status line and the body of an upgrade that is answered. */
async function refused(url: string, headers: object = {}): Promise<{ status: number; body: string }> {
  const socket = new WebSocket(url, { headers: { ...headers } });
  return new Promise((resolve, reject) => {
    socket.on('error', () => {});
    socket.on('open', () => reject(new Error('it was opened')));
    socket.on('unexpected-response', (_, response) => {
      let body = '';
      response.on('data', (chunk) => (body += chunk));
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body }));
    });
  });
}

describe('Responses over WebSocket', () => {
  it("serves OpenAI's client turn by turn, with a line of the log and figures for each", async () => {
    const { gateway, log } = await startAll();
    const socket = new ResponsesWS(new OpenAI({ apiKey: 'none', baseURL: `${gateway.url}/v1` }));
    onTestFinished(() => socket.close());
    const texts = [''];
    socket.on('response.output_text.delta', ({ delta }) => void texts.push(`${texts.pop()}${delta}`));
    socket.on('response.completed', () => void texts.push(''));
    for (let i = 0; i < 2; i++) socket.send(create as never);
    await until('served', () => texts.length === 3 && linesOf({ log }).length === 2);
    expect(texts).toEqual(['Hello from m0.', 'Hello from m0.', '']);
    expect(linesOf({ log })[1]).toMatchObject({
      path: '/v1/responses',
      tenant: 'default-flow',
      model: 'default-model',
      status: 200,
      endpoint: 'u0',
      completionTokens: 3,
    });
    expect(linesOf({ log })[1]?.estimate).toBeDefined();
    expect(linesOf({ log })[1]?.ttftMs).toBeGreaterThanOrEqual(0);
    const metrics = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
    expect(metrics).toMatch(/^headgate_\w+_total\{status="200",source="upstream"\} 2$/m);
    expect(gateway.flow.stats()).toMatchObject({ inFlight: 0, waiting: 0, dispatched: 2, released: 2 });
  });

  it('knows models by their aliases, and says which there are not', async () => {
    const { open, log } = await startAll({ models: { aliases: { small: 'default-model' } } });
    const client = await open();
    client.send({ ...create, model: 'small' });
    await client.next('response.completed');
    expect(linesOf({ log })[0]).toMatchObject({ model: 'small', status: 200 });
  });

  it('drops a turn with code, status and wait, and logs it', async () => {
    const bands = [{ priority: 0, maxRequests: 1 }];
    const file = { flowControl: { saturationDetector: { pluginRef: 'concurrency-detector' }, priorityBands: bands } };
    const { open, log, gateway } = await startEndless(file);
    const clients = [await open(), await open(), await open()];
    for (const client of clients) client.send(long);
    await until('dropped', () => clients.some(({ events }) => events.some(({ type }) => type === 'error')));
    const [told] = clients.flatMap(({ events }) => events.filter(({ type }) => type === 'error'));
    expect(told).toMatchObject({ status: 429, code: 'ERR_FLOW_SATURATED', retry_after_ms: expect.any(Number) });
    expect(linesOf({ log })[0]).toMatchObject({ status: 429, code: 'ERR_FLOW_SATURATED' });
    for (const client of clients) client.socket.terminate();
    await until('idle', () => gateway.flow.stats().inFlight === 0 && gateway.flow.stats().waiting === 0);
  });

  it('spends of the plan of its key, and is told at once when nothing is left, while others are served', async () => {
    const auth = { keys: keys.map(({ key, tenant }) => ({ key, tenant, plan: tenant })) };
    const plans = {
      alice: [
        { requests: 1, per: 'month' },
        { tokens: 1_000, per: 'month' },
      ],
      batch: [{ requests: 9, per: 'month' }],
    };
    const { gateway, log, open } = await startAll({ auth, budgets: { plans } });
    const client = await open();
    client.send(create);
    await client.next('response.completed');
    client.send(create);
    const { error } = (await client.next('error')) as { error?: { code?: string; resets_at?: number } };
    expect(error?.code).toBe('ERR_FLOW_BUDGET');
    expect(error?.resets_at).toBeGreaterThan(Date.now() / 1_000);
    const other = await open('/v1/responses', 'batch');
    other.send(create);
    await other.next('response.completed');
    expect(linesOf({ log }).map(({ tenant, status }) => [tenant, status])).toEqual([
      ['alice', 200],
      ['alice', 429],
      ['batch', 200],
    ]);
    const answer = await fetch(`${gateway.url}/v1/budget`, { headers: { authorization: 'Bearer alice' } });
    const { data } = (await answer.json()) as { data: { unit: string; used: number; reserved: number }[] };
    expect(data.find(({ unit }) => unit === 'requests')).toMatchObject({ used: 1, reserved: 0 });
    // Of the prompt and three tokens, what was told.
    const tokens = data.find(({ unit }) => unit === 'tokens');
    expect(tokens?.reserved).toBe(0);
    expect(tokens?.used).toBeGreaterThan(0);
    expect(tokens?.used).toBeLessThan(20);
  });

  it('tells of waiting, with the place', async () => {
    const { open } = await startEndless({ waiting: { after: '5ms', every: '5ms', position: true } });
    const [first, second] = [await open(), await open()];
    first.send(create);
    await first.next('response.created');
    second.send(create);
    expect(await second.next('response.queued')).toMatchObject({ position: 1 });
    first.send({ type: 'response.cancel' });
    await second.next('response.created');
  });

  it.each(['queued', 'streaming'])('gives a turn back whose client vanishes while it is %s', async (phase) => {
    const { open, gateway, models, log } = await startAll();
    const [first, second] = [await open(), await open()];
    first.send(long);
    await first.next('response.output_text.delta');
    second.send(create);
    await until('it waits', () => gateway.flow.stats().waiting === 1);
    (phase === 'queued' ? second : first).socket.terminate();
    if (phase === 'queued') await until('left', () => gateway.flow.stats().waiting === 0);
    else await second.next('response.completed');
    await until('idle', () => gateway.flow.stats().inFlight === 0);
    await until('logged', () => linesOf({ log }).length === 2);
    expect(linesOf({ log }).map(({ ended }) => ended)).toContain('client-left');
    if (phase === 'streaming') {
      const metrics = await (await fetch(`${models[0]!.url}/metrics`)).text();
      expect(metrics).toContain('demo:aborted_requests_total{model_name="default-model"} 1');
    }
    expect(audit(gateway.flow).violations).toEqual([]);
  });

  it('evicts a turn for another, by the event that ends it', async () => {
    const { open, log } = await startAll({
      auth: { keys },
      flowControl: { saturationDetector: { pluginRef: 'concurrency-detector' }, enableEviction: true },
    });
    const [batch, chat] = [await open('/v1/responses', 'batch'), await open()];
    batch.send(long);
    await batch.next('response.created');
    chat.send(create);
    expect(await batch.next('response.failed')).toMatchObject({ response: { error: { code: 'ERR_FLOW_EVICTED' } } });
    await chat.next('response.completed');
    await until('logged', () => linesOf({ log }).length === 2);
    expect(linesOf({ log }).map(({ reason }) => reason)).toContain('evicted');
  });

  it('stays at the server of its first turn, and waits for no other', async () => {
    const { open, gateway, log } = await startAll({}, 2);
    const [first, second, third] = [await open(), await open(), await open()];
    first.send(create);
    await first.next('response.completed');
    second.send(create);
    await second.next('response.completed');
    await until('logged', () => linesOf({ log }).length === 2);
    const own = linesOf({ log })[0]?.endpoint;
    // Another client has its server's seat now.
    third.send(long);
    await third.next('response.created');
    for (let i = 0; i < 3; i++) {
      first.send(create);
      await first.next('response.completed');
    }
    await until('idle', () => gateway.flow.stats().inFlight === 0 && linesOf({ log }).length === 6);
    const ofFirst = linesOf({ log }).filter((_, i) => i === 0 || i >= 2);
    expect(ofFirst.filter(({ endpoint }) => endpoint === own).length).toBeGreaterThanOrEqual(4);
  });

  it('answers the turn when its server cannot be reached, or dies', async () => {
    const { open, models, log } = await startAll();
    const client = await open();
    client.send(long);
    await client.next('response.created');
    models[0]!.child.kill('SIGKILL');
    expect(await client.next('response.failed')).toMatchObject({ response: { error: { code: 'upstream_failed' } } });
    await until('closed', () => client.closed !== undefined);
    const next = await open();
    next.send(create);
    expect(await next.next('error')).toMatchObject({ code: 'upstream_unreachable', status: 502 });
    await until('logged', () => linesOf({ log }).length === 2);
    expect(linesOf({ log }).map(({ code }) => code)).toEqual(['upstream_failed', 'upstream_unreachable']);
  });
});

describe('a turn of Responses that reaches no server', () => {
  const dead = { id: 'dead', url: 'http://127.0.0.1:1', weight: 8 };

  it('goes to another one, with the frames behind it', async () => {
    const model = await startModelServer('m');
    const { gateway, log } = await startGateway(fileOf([dead, { id: 'alive', url: model.url }]));
    const client = await connect(`${gateway.url.replace('http', 'ws')}/v1/responses`);
    client.send(create);
    client.send({ ...create, stream_id: 'b' });
    for (let i = 0; i < 2; i++) await client.next('response.completed');
    await until('logged', () => linesOf({ log }).length === 2);
    expect(linesOf({ log })[0]).toMatchObject({ endpoint: 'alive', retries: 1, status: 200 });
    expect(linesOf({ log })[1]).toMatchObject({ endpoint: 'alive', status: 200 });
    expect(log.filter(({ event }) => event === 'retry').map(({ fields }) => fields.code)).toEqual([
      'upstream_unreachable',
    ]);
    expect(gateway.flow.stats()).toMatchObject({ inFlight: 0, dispatched: 3, released: 3 });
  });

  it('can be cancelled while it is on its way, and leaves nothing behind when its client vanishes', async () => {
    const silent = createServer();
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void silent.close());
    const { port } = silent.address() as AddressInfo;
    const { gateway } = await startGateway(fileOf([`http://127.0.0.1:${port}`], {}, 2));
    const [one, other] = [
      await connect(`${gateway.url.replace('http', 'ws')}/v1/responses`),
      await connect(`${gateway.url.replace('http', 'ws')}/v1/responses`),
    ];
    for (const client of [one, other]) client.send(create);
    await until('both run', () => gateway.flow.stats().inFlight === 2);
    one.send({ type: 'response.cancel' });
    expect(await one.next('response.incomplete')).toMatchObject({ response: { status: 'cancelled' } });
    other.socket.terminate();
    await until('idle', () => gateway.flow.stats().inFlight === 0);
    // A server whose client has left is not to blame.
    expect(gateway.pool.endpoints[0]?.overloadedUntilMs).toBeLessThanOrEqual(0);
  });

  it('is told why when there is no other one, and its socket stays for the next', async () => {
    const { gateway, log } = await startGateway(fileOf([dead]));
    const client = await connect(`${gateway.url.replace('http', 'ws')}/v1/responses`);
    for (let i = 0; i < 2; i++) {
      client.send(create);
      expect(await client.next('error')).toMatchObject({ code: 'upstream_unreachable', status: 502 });
    }
    await until('logged', () => linesOf({ log }).length === 2);
    expect(gateway.flow.stats()).toMatchObject({ inFlight: 0, waiting: 0 });
    expect(client.closed).toBeUndefined();
  });

  it('leaves a server alone that has no sockets: its requests go there as before', async () => {
    const http = await startUpstream(({ req, res }) => {
      if (req.headers.upgrade !== undefined) res.writeHead(404).end();
      else res.end('{}');
    });
    const model = await startModelServer('m');
    const servers = [
      { id: 'http', url: http.url, weight: 8 },
      { id: 'both', url: model.url },
    ];
    const { gateway } = await startGateway(fileOf(servers));
    const client = await connect(`${gateway.url.replace('http', 'ws')}/v1/responses`);
    client.send(create);
    await client.next('response.completed');
    expect(gateway.pool.get('http')?.overloadedUntilMs).toBeLessThanOrEqual(0);
  });
});

describe('Realtime', () => {
  it('connects before the first turn, with no seat, and has frames and turns in order', async () => {
    const { open, gateway, log } = await startAll();
    const client = await open('/v1/realtime?model=default-model');
    await client.next('session.created');
    expect(gateway.flow.stats().dispatched).toBe(0);
    client.send({ type: 'conversation.item.create', item: { id: 'one' } });
    client.send({ type: 'response.create' });
    client.send({ type: 'conversation.item.create', item: { id: 'two' } });
    expect(await client.next('response.done')).toMatchObject({ response: { status: 'completed' } });
    await client.next('conversation.item.added');
    await client.next('conversation.item.added');
    await until('logged', () => linesOf({ log }).length === 1);
    expect(linesOf({ log })[0]).toMatchObject({ path: '/v1/realtime', status: 200 });
  });

  it('goes to a server of its band, and of its model, by the name that the server knows', async () => {
    const models = [await startModelServer('paid'), await startModelServer('own')];
    const labels = (group: string) => ({ labels: { group, model: 'default-model' } });
    const { gateway, log } = await startGateway(
      fileOf(
        [
          { id: 'paid', url: models[0]!.url, weight: 9, ...labels('paid') },
          { id: 'own', url: models[1]!.url, ...labels('own') },
        ],
        {
          models: { aliases: { small: 'default-model' } },
          flowControl: {
            saturationDetector: { pluginRef: 'concurrency-detector' },
            defaultPriorityBand: { endpoints: ['own', { group: 'paid', after: '1s' }] },
          },
        },
      ),
    );
    const url = `${gateway.url.replace('http', 'ws')}/v1/realtime`;
    const client = await connect(`${url}?model=small`);
    await client.next('session.created');
    client.send({ type: 'response.create' });
    expect(await client.next('response.done')).toMatchObject({ response: { status: 'completed' } });
    await until('logged', () => linesOf({ log }).length === 1);
    expect(linesOf({ log })[0]).toMatchObject({ endpoint: 'own', model: 'small', status: 200 });
    expect(await refused(`${url}?model=none`)).toMatchObject({ status: 404 });
  });

  it("serves OpenAI's client, whose turns have lines of the log, and one of which it cancels", async () => {
    const { gateway, log } = await startAll({ auth: { keys } });
    const { hostname: host, port } = new URL(gateway.url);
    // The client speaks TLS alone; the test takes that away below it.
    const options = { createConnection: () => createConnection({ host, port: Number(port) }) };
    const ai = new OpenAI({ apiKey: 'alice', baseURL: 'https://gateway.test/v1' });
    const socket = new OpenAIRealtimeWS({ model: 'default-model', options }, ai);
    onTestFinished(() => socket.close());
    const done: (string | undefined)[] = [];
    socket.on('response.done', ({ response }) => void done.push(response.status));
    await new Promise((resolve) => socket.on('session.created', resolve));
    expect(gateway.flow.stats()).toMatchObject({ inFlight: 0, dispatched: 0 });
    socket.send({ type: 'response.create', response: { max_output_tokens: 2 } });
    await until('served', () => done.length === 1);
    socket.on('response.created', ({ response }) =>
      socket.send({ type: 'response.cancel', response_id: response.id! }),
    );
    socket.send({ type: 'response.create' });
    await until('cancelled', () => done.length === 2 && linesOf({ log }).length === 2);
    expect(done).toEqual(['completed', 'cancelled']);
    expect(linesOf({ log })[0]).toMatchObject({ path: '/v1/realtime', tenant: 'alice', endpoint: 'u0', status: 200 });
    expect(gateway.flow.stats()).toMatchObject({ inFlight: 0, waiting: 0, dispatched: 2, released: 2 });
  });

  it("serves OpenAI's client of browsers, whose key is a protocol", async () => {
    const { gateway } = await startAll({ auth: { keys } });
    const url = `${gateway.url.replace('http', 'ws')}/v1/realtime?model=default-model`;
    const protocols = ['realtime', 'openai-insecure-api-key.alice'];
    const socket = new WebSocket(url, protocols);
    onTestFinished(() => socket.terminate());
    const types: string[] = [];
    socket.on('message', (data) => {
      const { type } = JSON.parse(String(data));
      types.push(type);
      if (type === 'session.created') socket.send(JSON.stringify({ type: 'response.create' }));
    });
    await until('served', () => types.includes('response.done'));
    expect([socket.protocol, gateway.flow.stats().dispatched]).toEqual(['realtime', 1]);
    const wrong = new WebSocket(url, ['realtime', 'openai-insecure-api-key.nobody']);
    const [error] = await once(wrong, 'error');
    expect(error.message).toContain('401');
  });

  it('has a turn cancelled that runs, and one that waits', async () => {
    const { open, gateway } = await startEndless();
    const [first, second] = [await open('/v1/realtime'), await open('/v1/realtime')];
    first.send({ type: 'response.create' });
    await first.next('response.created');
    second.send({ type: 'response.create' });
    await until('it waits', () => gateway.flow.stats().waiting === 1);
    second.send({ type: 'response.cancel' });
    expect(await second.next('response.done')).toMatchObject({ response: { status: 'cancelled' } });
    first.send({ type: 'response.cancel' });
    expect(await first.next('response.done')).toMatchObject({ response: { status: 'cancelled' } });
    await until('idle', () => gateway.flow.stats().inFlight === 0);
  });
});

describe('a gateway', () => {
  it('drains: a turn ends, what is idle closes with 1012, and a new socket is answered 503', async () => {
    const { open, gateway } = await startAll({ drain: { waiting: '1s', streams: '10s' } });
    const [busy, still] = [await open(), await open('/v1/realtime')];
    busy.send(create);
    await busy.next('response.created');
    const closed = gateway.close();
    await until('closed', () => still.closed !== undefined);
    await busy.next('response.completed');
    await until('closed', () => busy.closed !== undefined);
    expect([still.closed?.code, busy.closed?.code]).toEqual([1012, 1012]);
    expect(await closed).toMatchObject({ inFlight: 0 });
  });

  it('takes a reload for the next turn: a key that is gone, and a server that is gone', async () => {
    const { open, gateway, file, models } = await startAll({ auth: { keys } });
    const client = await open();
    client.send(create);
    await client.next('response.completed');
    gateway.reconfigure(loadGatewayConfig({ ...file, auth: { keys: [keys[1]] } }));
    client.send(create);
    expect(await client.next('error')).toMatchObject({ code: 'invalid_api_key', status: 401 });
    const other = await open('/v1/responses', 'batch');
    other.send(create);
    await other.next('response.completed');
    const upstreams = [{ id: 'other', url: models[0]!.url }];
    gateway.reconfigure(loadGatewayConfig({ ...file, upstreams, auth: { keys } }));
    await until('closed', () => other.closed !== undefined);
    expect(other.closed?.code).toBe(1012);
  });

  it('opens no more sockets of a sender than the limit, and one more when one has closed', async () => {
    const { open, gateway } = await startAll({ auth: { keys }, limits: { maxSockets: 1 } });
    const first = await open();
    const url = `${gateway.url.replace('http', 'ws')}/v1/responses`;
    expect(await refused(url, { authorization: 'Bearer alice' })).toMatchObject({
      status: 429,
      body: expect.stringContaining('too_many_sockets'),
    });
    await open('/v1/responses', 'batch');
    first.socket.close();
    await until('closed', () => first.closed !== undefined);
    const next = await open();
    next.send(create);
    await next.next('response.completed');
  });

  it('has the prompt of a turn in the capacity ledger until its first token', async () => {
    const { open, gateway, say } = await startEndless({
      plugins: [
        { type: 'concurrency-detector', parameters: { maxConcurrency: 9 } },
        { type: 'capacity-ledger', parameters: { slots: 9, prefillTokens: 150 } },
      ],
      flowControl: {
        saturationDetector: { pluginRef: 'concurrency-detector' },
        constraintPluginRefs: ['capacity-ledger'],
      },
    });
    const [first, second] = [await open(), await open()];
    const prompt = { ...long, input: 'word '.repeat(80) };
    first.send(prompt);
    await first.next('response.created');
    second.send(prompt);
    await until('one waits', () => gateway.flow.stats().waiting === 1);
    say();
    await until('both run', () => gateway.flow.stats().inFlight === 2);
    for (const client of [first, second]) client.socket.terminate();
    await until('idle', () => gateway.flow.stats().inFlight === 0);
  });

  it('answers an upgrade without a key, from a page of elsewhere, and to a model that there is not', async () => {
    const { gateway } = await startAll({ auth: { keys } });
    const url = `${gateway.url.replace('http', 'ws')}/v1/realtime`;
    expect(await refused(url)).toMatchObject({ status: 401 });
    const authorization = 'Bearer alice';
    expect(await refused(url, { authorization, origin: 'https://page.test' })).toMatchObject({ status: 403 });
    expect(await refused(`${url.replace('realtime', 'files')}`, { authorization })).toMatchObject({ status: 405 });
  });

  it('serves a request that offers another protocol as one that offers none', async () => {
    const upstream = await startUpstream();
    const { gateway } = await startGateway(fileOf([upstream.url]));
    const { hostname: host, port } = new URL(gateway.url);
    const socket = createConnection({ host, port: Number(port) });
    onTestFinished(() => void socket.destroy());
    let text = '';
    socket.on('data', (chunk) => (text += chunk));
    const body = JSON.stringify({ model: 'llama', messages: [] });
    const head = `POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`;
    socket.write(head + body.slice(0, 5));
    setImmediate(() => socket.write(body.slice(5)));
    await until('served', () => text.includes('served'));
    expect(text).toMatch(/^HTTP\/1.1 200/);
    // The connection goes on.
    text = '';
    socket.write('GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n');
    await until('served', () => text.includes('llama'));
  });
});

it('a thousand idle sockets hold no seat, and less than 40 kB each, with their clients and their servers', async () => {
  const url = await startSockets((socket) => {
    socket.on('message', () => {
      for (const type of ['response.created', 'response.completed'])
        socket.send(JSON.stringify({ type, response: { id: 'r' } }));
    });
  });
  const file = fileOf([url.replace('ws:', 'http:')], { limits: { maxConnections: 5_000 } }, 1_000);
  const { gateway } = await startGateway(file);
  const served = async () => {
    const client = await connect(`${gateway.url.replace('http', 'ws')}/v1/responses`);
    client.send(create);
    await client.next('response.completed');
    return client;
  };
  const bytes = (): number => {
    collectGarbage();
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  };
  await served();
  const before = bytes();
  const clients = await Promise.all(Array.from({ length: 1_000 }, served));
  await until('idle', () => gateway.flow.stats().released === 1_001);
  expect(gateway.flow.stats()).toMatchObject({ inFlight: 0, waiting: 0 });
  expect((bytes() - before) / 1_000).toBeLessThan(40_000);
  expect(clients.filter(({ socket }) => socket.readyState !== WebSocket.OPEN)).toEqual([]);
});
