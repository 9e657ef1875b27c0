/** The rank of a request inside servers that order what they were sent, as vLLM and SGLang do. */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { loadGatewayConfig } from '../../src/gateway/index.js';
import { serverRank } from '../../src/upstream/index.js';
import { fileOf, startGateway } from './support/gateway.js';

interface Body {
  readonly priority?: number;
  readonly nvext?: object;
  readonly user: string;
}

/** Runs one request at a time. Of those that wait it takes the one whose `priority` is first in its order. */
async function orderingServer(order: 'lower first' | 'higher first') {
  const waiting: { body: Body; res: ServerResponse }[] = [];
  const received: { text: string; headers: IncomingHttpHeaders }[] = [];
  const served: string[] = [];
  let running: ServerResponse | undefined;
  const sign = order === 'lower first' ? 1 : -1;
  const next = (): void => {
    waiting.sort((a, b) => sign * ((a.body.priority ?? 0) - (b.body.priority ?? 0)));
    const first = waiting.shift();
    if (first !== undefined) served.push(first.body.user);
    running = first?.res;
  };
  const server = createServer((req, res) => {
    let text = '';
    req.on('data', (chunk) => {
      text += chunk;
    });
    req.on('end', () => {
      received.push({ text, headers: req.headers });
      waiting.push({ body: JSON.parse(text), res });
      if (running === undefined) next();
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const finish = (): void => {
    running?.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    next();
  };
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, received, served, finish, count: () => waiting.length + (running === undefined ? 0 : 1) };
}

const keys = [
  { key: 'low', tenant: 'low', objective: 'batch' },
  { key: 'high', tenant: 'high', objective: 'premium' },
  { key: 'proxy', tenant: 'proxy', trusted: true },
  { key: 'some', tenant: 'some', priority: 0, maxPriority: 50 },
];
const objectives = { premium: 100, batch: -10 };

async function behind(order: 'lower first' | 'higher first', priority: string | object, more: object = {}) {
  const server = await orderingServer(order);
  const upstream = { id: 'u', url: server.url, priority, ...(priority === 'auto' && { metrics: 'sglang' }) };
  const file = fileOf([upstream], { auth: { keys }, objectives, scrape: { enabled: false }, ...more }, 100);
  const { post, gateway } = await startGateway(file);
  const ask = (key: string, body: object | string, headers: Record<string, string> = {}) =>
    post(typeof body === 'string' ? body : { user: key, ...body }, {
      headers: { authorization: `Bearer ${key}`, ...headers },
    });
  /** The body and the headers that the server got. */
  const passed = async (key: string, body: object | string, headers: Record<string, string> = {}) => {
    const answer = ask(key, body, headers);
    await vi.waitFor(() => expect(server.count()).toBe(1));
    server.finish();
    await answer;
    const { text, headers: got } = server.received.at(-1)!;
    return { body: JSON.parse(text), headers: got };
  };
  return { ...server, ask, passed, gateway };
}

/** In what order the server serves requests that came to it before: one runs, a batch job and a premium one wait. */
async function orderOf(order: 'lower first' | 'higher first', dialect: string | object): Promise<string[]> {
  const { ask, served, finish, count } = await behind(order, dialect);
  const answers: Promise<Response>[] = [];
  for (const [i, key] of ['low', 'low', 'high'].entries()) {
    answers.push(ask(key, {}));
    await vi.waitFor(() => expect(count()).toBe(i + 1));
  }
  for (const _ of answers) finish();
  await Promise.all(answers);
  return served;
}

describe('a premium request', () => {
  it.each([
    ['vLLM', 'lower first', 'vllm'],
    ['SGLang', 'higher first', 'sglang'],
    ['SGLang, found by its metrics', 'higher first', 'auto'],
    ['a server with numbers of its own', 'lower first', { field: 'priority', map: { premium: 1, batch: 9 } }],
  ] as const)('passes waiting batch jobs inside %s too', async (_, order, dialect) => {
    expect(await orderOf(order, dialect)).toEqual(['low', 'high', 'low']);
  });

  it('would go last in a server that reads the number the other way round', async () => {
    expect(await orderOf('higher first', 'vllm')).toEqual(['low', 'low', 'high']);
  });
});

describe('what a client says of its rank', () => {
  it('is taken out unless its key is trusted', async () => {
    const { passed } = await behind('lower first', 'vllm');
    expect((await passed('low', { priority: -1_000_000 })).body.priority).toBe(10);
    expect((await passed('proxy', { priority: -7 })).body.priority).toBe(-7);
  });

  it('is taken out for a server that knows no rank, and the other bytes stay', async () => {
    const { passed } = await behind('lower first', 'none');
    expect((await passed('low', { priority: -5, n: 1 })).body).toEqual({ user: 'low', n: 1 });
    expect((await passed('proxy', { priority: -5 })).body.priority).toBe(-5);
  });

  it('in the hints and headers of Dynamo ends here too, and its other hints stay', async () => {
    const { passed } = await behind('higher first', 'dynamo');
    const nvext = { annotations: ['a'], agent_hints: { priority: 99, strict_priority: 9, osl: 20 } };
    const headers = { 'x-dynamo-request-priority': '99', 'x-dynamo-request-strict-priority': '9' };
    const got = await passed('high', { nvext }, headers);
    expect(got.body.nvext).toEqual({ annotations: ['a'], agent_hints: { osl: 20, priority: 100 } });
    expect(Object.keys(got.headers).filter((name) => name.startsWith('x-dynamo'))).toEqual([]);
    const trusted = await passed('proxy', { nvext }, headers);
    expect(trusted.body.nvext).toEqual(nvext);
    expect(trusted.headers).toMatchObject(headers);
  });

  it('passes as it came where the file does not say how servers are told', async () => {
    const server = await orderingServer('lower first');
    const { post } = await startGateway(fileOf([server.url]));
    const answer = post('{"user":"a",  "priority":3}');
    await vi.waitFor(() => expect(server.count()).toBe(1));
    server.finish();
    await answer;
    expect(server.received[0]?.text).toBe('{"user":"a",  "priority":3}');
  });
});

describe('a server with a field of its own', () => {
  const rank = { field: 'rank', map: { premium: 0.9, batch: 0.1, usual: 0.5 } };
  const more = { objectives: { ...objectives, usual: 0 } };

  it.each([
    ['high', 0.9],
    ['some', 0.5],
    ['low', 0.1],
  ])('gets for %s the number %d, in that field, and the other bytes stay', async (key, expected) => {
    const { passed, received } = await behind('lower first', rank, more);
    expect((await passed(key, { rank: 5, priority: 7 })).body).toEqual({ user: key, rank: expected, priority: 7 });
    await passed(key, {});
    expect(received.at(-1)?.text).toBe(`{"rank":${expected},"user":"${key}"}`);
  });

  it('gets one number, however a client writes the name', async () => {
    const { ask, passed, received } = await behind('lower first', rank, more);
    await passed('low', {});
    const { length } = received;
    const twice = await ask('low', '{"rank":5,"user":"low","r\\u0061nk":6}');
    expect([twice.status, received.length]).toEqual([400, length]);
    await passed('low', '{"r\\u0061nk":5,"user":"low"}');
    expect(received.at(-1)?.text).toBe('{"r\\u0061nk":0.1,"user":"low"}');
  });

  it('gets what a trusted client says', async () => {
    const { passed } = await behind('lower first', rank, more);
    expect((await passed('proxy', { rank: 5 })).body.rank).toBe(5);
    expect((await passed('proxy', {})).body.rank).toBe(0.5);
  });

  it.each([
    ['low', '{"rank":5,"user":"low"}', { rank: 0.1, user: 'low' }],
    ['high', '{"user":"high"}', { rank: 0.9, user: 'high' }],
    ['proxy', '{"rank":5,"user":"proxy"}', { rank: 5, user: 'proxy' }],
    ['low', '{"rank":5,"user":"low","rank":6}', 400],
  ])(
    'that a reload gave it gets the right number from a request of %s that waited: %s',
    async (key, body, expected) => {
      const server = await orderingServer('lower first');
      const fileWith = (priority?: object) =>
        fileOf([{ id: 'u', url: server.url, ...(priority && { priority }) }], {
          ...{ auth: { keys }, scrape: { enabled: false } },
          ...more,
        });
      const { post, gateway } = await startGateway(fileWith());
      const ask = (text: string, by: string) => post(text, { headers: { authorization: `Bearer ${by}` } });
      const first = ask('{"user":"first"}', 'proxy');
      await vi.waitFor(() => expect(server.count()).toBe(1));
      const second = ask(body, key);
      await vi.waitFor(() => expect(gateway.flow.stats().waiting).toBe(1));
      gateway.reconfigure(loadGatewayConfig(fileWith(rank)));
      server.finish();
      await first;
      if (typeof expected === 'number') {
        expect((await second).status).toBe(expected);
        await vi.waitFor(() => expect(gateway.flow.stats().inFlight).toBe(0));
        return;
      }
      await vi.waitFor(() => expect(server.count()).toBe(1));
      server.finish();
      await second;
      expect(JSON.parse(server.received.at(-1)!.text)).toEqual(expected);
      expect(server.received.at(-1)!.text.match(/rank/g)).toHaveLength(1);
    },
  );

  it('gets the number of the next objective below, and under all of them the lowest one', async () => {
    const priorities = [99, 101, -1, -11];
    const senders = priorities.map((priority) => ({ key: `k${priority}`, tenant: 'a', priority }));
    const { passed } = await behind('lower first', rank, { ...more, auth: { keys: senders } });
    const told: unknown[] = [];
    for (const { key } of senders) told.push((await passed(key, {})).body.rank);
    expect(told).toEqual([0.5, 0.9, 0.1, 0.1]);
  });

  it.each([
    [{ field: 'model', map: { premium: 1 } }, 'upstreams[0].priority.field: expected a name of up to 24 letters'],
    [{ field: 'ränk', map: { premium: 1 } }, 'upstreams[0].priority.field: expected a name of up to 24 letters'],
    [{ field: 'rank', map: { premiun: 1 } }, 'upstreams[0].priority.map.premiun: expected one of the objectives'],
    [{ field: 'rank', map: { premium: '1' } }, 'upstreams[0].priority.map.premium: expected a number'],
    [{ field: 'rank', map: {} }, 'upstreams[0].priority.map: expected an object with at least one objective; got {}'],
    [{ field: 'rank' }, 'upstreams[0].priority.map: expected'],
    ['vlm', '"auto" (did you mean "vllm"?), or { field, map }; got "vlm" (string)'],
    [[], 'upstreams[0].priority: expected an object; got an array'],
  ])('that is described as %j is reported', (priority, message) => {
    const file = { ...fileOf(['http://127.0.0.1:1']), objectives };
    const upstreams = [{ id: 'u', url: 'http://127.0.0.1:1', priority }];
    expect(() => loadGatewayConfig({ ...file, upstreams })).toThrow(message);
  });
});

describe('a tier of service', () => {
  const serviceTiers = { priority: 'premium', flex: 'batch' };
  it.each([
    ['low', 'priority', -10],
    ['high', 'flex', -10],
    ['some', 'priority', 50],
    ['some', 'flex', -10],
    ['some', 'unknown', 0],
    ['proxy', 'priority', 100],
  ])('of a request of %s that asks for %s gives priority %d', async (key, tier, priority) => {
    const { passed } = await behind('higher first', 'sglang', { serviceTiers });
    expect((await passed(key, { service_tier: tier })).body).toMatchObject({ priority, service_tier: tier });
  });
});

describe('the rank of a priority', () => {
  it.each([
    ['vllm', 5, -5],
    ['sglang', 5, 5],
    ['dynamo', -5, -5],
    ['none', 5, 0],
    ['vllm', 0, 0],
    ['vllm', 2 ** 40, -(2 ** 31 - 1)],
    ['sglang', -(2 ** 40), -(2 ** 31 - 1)],
  ] as const)('for %s of %d is %d', (dialect, priority, rank) => {
    expect(serverRank(dialect, priority)).toBe(rank);
  });
});

describe("a policy class of Dynamo's router", () => {
  const header = 'x-dynamo-meta-policy-class';
  const classes = { objectives: { premium: 100, batch: -10, regular: 0 }, policyClasses: ['premium', 'regular'] };

  it('is an objective: the header of a trusted sender names the band, and goes on as it came', async () => {
    const { passed, gateway } = await behind('higher first', 'dynamo', classes);
    const bands: number[] = [];
    gateway.flow.on('dispatched', ({ item }) => bands.push(item.priority));
    expect((await passed('proxy', {}, { [header]: 'premium' })).headers[header]).toBe('premium');
    expect((await passed('proxy', {}, { [header]: 'other' })).headers[header]).toBe('other');
    expect(bands).toEqual([100, 0]);
  });

  it('is told of others by their priority; what a client says of it is taken out', async () => {
    const { passed } = await behind('higher first', 'dynamo', classes);
    for (const [key, told] of Object.entries({ high: 'premium', some: 'regular', low: undefined })) {
      const { headers } = await passed(key, {}, { [header]: 'premium', x_dynamo_meta_policy_class: 'premium' });
      expect([headers[header], headers.x_dynamo_meta_policy_class]).toEqual([told, undefined]);
    }
  });

  it('is told to servers of Dynamo alone', async () => {
    const { passed } = await behind('lower first', 'vllm', classes);
    expect((await passed('high', {}, { [header]: 'premium' })).headers[header]).toBeUndefined();
    expect((await passed('proxy', {}, { [header]: 'premium' })).headers[header]).toBe('premium');
  });

  it('has to be an objective', () => {
    const file = fileOf(['http://127.0.0.1:9'], { objectives, policyClasses: ['premum'] });
    expect(() => loadGatewayConfig(file)).toThrow(/policyClasses\[0\]: expected one of .*premium.* got "premum"/);
  });
});
