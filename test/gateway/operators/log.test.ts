/** The gateway's log: what a line says of a request, of drops, and of a reload. */
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createGateway, type LogFields, lineLog, loadGatewayConfig } from '../../../src/gateway/index.js';
import { changesBetween } from '../../../src/gateway/settings/config-changes.js';
import { readTrace, scenarioFromTrace } from '../../../src/simulator/index.js';
import { until } from '../../integration/support/until.js';
import { fileOf, type Started, startGateway } from '../support/gateway.js';
import { serve, sse, startUpstream } from '../support/upstream.js';

const chat = { model: 'llama', messages: [{ role: 'user', content: 'hello' }] };
const keys = [
  { key: 'sk-acme', tenant: 'acme', priority: 10 },
  { key: 'sk-mesh', tenant: 'mesh', trusted: true },
];
const as = (key: string, headers: Record<string, string> = {}) => ({
  headers: { authorization: `Bearer ${key}`, ...headers },
});

async function requestLines({ log }: Started, count: number): Promise<LogFields[]> {
  const lines = () => log.filter(({ event }) => event === 'request').map(({ fields }) => fields);
  await until('the requests are logged', () => lines().length >= count);
  return lines();
}

describe('the line of a request', () => {
  it('has who sent it, how long it waited, and when the first token came', async () => {
    const upstream = await startUpstream();
    const started = await startGateway(fileOf([upstream.url], { auth: { keys } }));
    await (await started.post({ ...chat, stream: true }, as('sk-acme'))).text();
    const [line] = await requestLines(started, 1);
    expect(line).toMatchObject({
      tenant: 'acme',
      priority: 10,
      status: 200,
      endpoint: 'u0',
      queuedMs: 0,
      ttftMs: expect.any(Number),
    });
    expect(line?.ttftMs).toBeLessThanOrEqual(line?.durationMs as number);
    expect([line?.reason, line?.code, line?.retries]).toEqual([undefined, undefined, undefined]);
  });

  it('names the tenant and the priority that a trusted sender speaks for, unless tenants are off', async () => {
    const upstream = await startUpstream();
    const file = fileOf([upstream.url], { auth: { keys }, objectives: { batch: -5 } });
    const headers = { 'x-gateway-inference-fairness-id': 'borealis', 'x-gateway-inference-objective': 'batch' };
    const open = await startGateway(file);
    await open.post(chat, as('sk-mesh', headers));
    expect((await requestLines(open, 1))[0]).toMatchObject({ tenant: 'borealis', priority: -5 });
    const discreet = await startGateway({ ...file, log: { tenants: false } });
    await discreet.post(chat, as('sk-mesh', headers));
    expect((await requestLines(discreet, 1))[0]).toMatchObject({ tenant: undefined, priority: -5 });
  });

  it('says how long it held its seat, without its upload and its wait, so that a log tells who ran beside whom', async () => {
    const busy = setInterval(() => {
      for (const untilMs = performance.now() + 8; performance.now() < untilMs; );
    }, 12);
    onTestFinished(() => clearInterval(busy));
    const upstream = await startUpstream((received) => setTimeout(() => serve(received, 0), 10));
    const lines: string[] = [];
    const config = loadGatewayConfig(fileOf([upstream.url], {}, 4));
    const gateway = await createGateway(config, { log: lineLog('json', (line) => lines.push(line)) });
    onTestFinished(async () => void (await gateway.close()));
    const inPieces = (): ReadableStream<Uint8Array> => {
      const bytes = Buffer.from(JSON.stringify(chat));
      return new ReadableStream({
        async start(controller) {
          controller.enqueue(bytes.subarray(0, 9));
          await pause(40);
          controller.enqueue(bytes.subarray(9));
          controller.close();
        },
      });
    };
    const client = async (): Promise<void> => {
      for (let turn = 0; turn < 8; turn++) {
        const body = turn % 2 === 0 ? inPieces() : JSON.stringify(chat);
        const init = { method: 'POST', body, duplex: 'half', headers: { 'content-type': 'application/json' } };
        await (await fetch(`${gateway.url}/v1/chat/completions`, init as RequestInit)).text();
      }
    };
    await Promise.all(Array.from({ length: 12 }, client));
    const { rows } = readTrace(lines.join(''));
    expect(rows).toHaveLength(96);
    // The pieces of an upload come 40 ms apart: that time is neither in the queue nor in a seat.
    const uploaded = rows.filter(({ totalMs = 0, queuedMs = 0, heldMs = 0 }) => totalMs - queuedMs - heldMs >= 20);
    expect(uploaded.length).toBeGreaterThan(0);
    expect(scenarioFromTrace(rows)).toMatchObject({ plugins: [{ parameters: { maxConcurrency: 4 } }] });
  });

  it('says why flow control dropped it, with what policy and code', async () => {
    const upstream = await startUpstream();
    const started = await startGateway(fileOf([upstream.url], { auth: { keys } }, 1));
    started.gateway.flow.reconfigure({ limits: { maxRequests: 0 }, saturationDetector: () => 2 });
    expect((await started.post(chat, as('sk-acme'))).status).toBe(429);
    expect((await requestLines(started, 1))[0]).toMatchObject({
      tenant: 'acme',
      priority: 10,
      status: 429,
      reason: 'global-max-requests',
      code: 'ERR_FLOW_SATURATED',
      queuedMs: 0,
      endpoint: undefined,
    });
  });

  it('says how long one waited that went away, or whose time was up', async () => {
    const upstream = await startUpstream();
    const started = await startGateway(fileOf([upstream.url]));
    started.gateway.flow.reconfigure({ saturationDetector: () => 2, defaultRequestTtl: 40 });
    expect((await started.post(chat)).status).toBe(503);
    const [line] = await requestLines(started, 1);
    expect(line).toMatchObject({ reason: 'ttl-expired', code: 'ERR_FLOW_TTL_EXPIRED' });
    expect(line?.queuedMs).toBeGreaterThanOrEqual(39);
  });

  it('counts retries, and names the server that answered', async () => {
    const full = await startUpstream(({ res }) =>
      res.writeHead(503).end('{"message":"Server overloaded: queue full"}'),
    );
    const free = await startUpstream();
    const started = await startGateway(fileOf([full.url, free.url], {}, 4));
    expect((await started.post(chat)).status).toBe(200);
    expect((await requestLines(started, 1))[0]).toMatchObject({
      endpoint: 'u1',
      retries: 1,
      status: 200,
      code: undefined,
    });
  });

  it('tells a client that left in the middle of a stream from an answer that broke off', async () => {
    const upstream = await startUpstream(({ res }) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' }).write(sse('half'));
    });
    const started = await startGateway(fileOf([upstream.url]));
    const leaving = new AbortController();
    const answer = await started.post({ ...chat, stream: true }, { signal: leaving.signal });
    await answer.body?.getReader().read();
    leaving.abort();
    const line = (await requestLines(started, 1))[0];
    expect(line).toMatchObject({ status: 200, ended: 'client-left', endpoint: 'u0' });
    expect(line?.code).toBeUndefined();
  });

  it('has the code of what the server did', async () => {
    const broken = await startUpstream(({ res }) => {
      res.write(sse('half'), () => res.destroy());
    });
    const started = await startGateway(fileOf([broken.url]));
    await (await started.post({ ...chat, stream: true })).text().catch(() => {});
    expect((await requestLines(started, 1))[0]).toMatchObject({
      code: 'upstream_failed',
      ended: 'cut-short',
      endpoint: 'u0',
    });
  });
});

describe('drops', () => {
  it('are one warning for all of a period, and the lines of the requests are none', async () => {
    const upstream = await startUpstream();
    const started = await startGateway(fileOf([upstream.url], { auth: { keys } }));
    started.gateway.flow.reconfigure({ limits: { maxRequests: 0 }, saturationDetector: () => 2 });
    for (let index = 0; index < 5; index++) await started.post(chat, as('sk-acme'));
    await requestLines(started, 5);
    await started.gateway.close();
    expect(started.log.filter(({ level, event }) => level === 'warn' && event !== 'metrics-closed')).toEqual([
      {
        level: 'warn',
        event: 'drops',
        fields: {
          drops: 5,
          periodMs: expect.any(Number),
          reasons: 'global-max-requests:5',
          priorities: '10:5',
          tenants: 'acme:5',
        },
      },
    ]);
  });

  it('are no warning when all of them are clients that left', async () => {
    const upstream = await startUpstream(() => {});
    const started = await startGateway(fileOf([upstream.url]));
    started.gateway.flow.reconfigure({ saturationDetector: () => 2 });
    const leaving = new AbortController();
    const answer = started.post(chat, { signal: leaving.signal });
    await until('it waits', () => started.gateway.flow.stats().waiting === 1);
    leaving.abort();
    await answer.catch(() => {});
    expect((await requestLines(started, 1))[0]).toMatchObject({
      reason: 'cancelled',
      code: 'ERR_FLOW_CANCELLED',
      ended: 'client-left',
    });
    await started.gateway.close();
    expect(started.log.filter(({ level }) => level === 'warn')).toEqual([]);
  });
});

describe('a line', () => {
  it('has the same in both formats, and leaves out what is not known', () => {
    const lines: string[] = [];
    for (const format of ['json', 'text'] as const) {
      lineLog(format, (line) => lines.push(line), () => new Date(0))('info', 'request', { id: 'a b', status: undefined, queuedMs: 3 }); // biome-ignore format: one call
    }
    expect(lines).toEqual([
      '{"time":"1970-01-01T00:00:00.000Z","level":"info","event":"request","id":"a b","queuedMs":3}\n',
      '1970-01-01T00:00:00.000Z info request id="a b" queuedMs=3\n',
    ]);
  });
});

describe('what a client wrote', () => {
  // Escape, carriage return and line feed, C1, marks of direction, separators of lines, what is not seen, and a lone
  // surrogate.
  const hostile = 'a\u001b[2J\r\n\u0085\u009b\u061c\u200b\u200e\u202e\u2028\u2029\u2066\u2069\ufeff\ufffa\ud800z';

  it.each(['json', 'text'] as const)('reaches no terminal as more than text in one line: %s', (format) => {
    const lines: string[] = [];
    const log = lineLog(format, (line) => lines.push(line));
    log('info', 'request', { model: hostile, path: `/v1/${hostile}`, tenant: hostile });
    expect(lines).toHaveLength(1);
    expect(lines[0]!.slice(0, -1)).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u);
    expect(lines[0]).toContain('a\\u001b[2J');
    if (format === 'json') expect(JSON.parse(lines[0]!).model).toBe(hostile);
  });
});

describe('the instant of a line', () => {
  it.each([0, 5, 999, 1000, 1001, 61_000, 60_999, 1_700_000_000_123])(
    'is %i ms after the epoch as ISO 8601 has it, whatever came before',
    (ms) => {
      let nowMs = 1_000;
      const lines: string[] = [];
      const log = lineLog(
        'text',
        (line) => lines.push(line),
        () => new Date(nowMs),
      );
      log('info', 'first');
      nowMs = ms;
      log('info', 'second');
      expect(lines[1]).toBe(`${new Date(ms).toISOString()} info second\n`);
    },
  );
});

describe('what changed between two files', () => {
  const before = fileOf(['http://10.0.0.1:8000', 'http://10.0.0.2:8000'], {
    auth: { keys: [{ key: 'sk-1', tenant: 'acme' }] },
    flowControl: { maxRequests: 100, saturationDetector: { pluginRef: 'concurrency-detector' } },
  });
  const changes = (more: object) =>
    changesBetween(loadGatewayConfig(before), loadGatewayConfig({ ...before, ...more }));

  it('is nothing for the same file', () => {
    expect(changes({})).toEqual([]);
  });

  it('is told by path, with the values before and after', () => {
    const flowControl = { maxRequests: 200, saturationDetector: { pluginRef: 'concurrency-detector' } };
    expect(changes({ flowControl, timeouts: { idle: '5s' }, models: { aliases: { gpt: 'llama' } } })).toEqual([
      'timeouts.idle: 60000 → 5000',
      'models.aliases.gpt: "llama"',
      'flowControl.maxRequests: 100 → 200',
    ]);
  });

  it('names servers and plugins, wherever in the list they stand', () => {
    const upstreams = [
      { id: 'new', url: 'http://10.0.0.9:8000' },
      { id: 'u1', url: 'http://10.0.0.2:8000', weight: 2 },
    ];
    const plugins = [{ type: 'concurrency-detector', parameters: { maxConcurrency: 9 } }];
    expect(changes({ upstreams, plugins })).toEqual([
      'upstreams[u0]: removed',
      'upstreams[u1].weight: 1 → 2',
      'upstreams[new]: added',
      'plugins[concurrency-detector].parameters.maxConcurrency: 1 → 9',
    ]);
  });

  it('never shows a secret', () => {
    const keys = [{ key: 'sk-2', tenant: 'acme' }];
    const told = changes({ auth: { keys }, admin: { token: 'sk-admin' } });
    expect(told).toEqual(['admin.token: changed', 'auth.keys[acme].key: changed']);
  });

  it('never shows the password in the URL of the shared state', () => {
    const shared = (password: string, more: object = {}) => {
      const sharedState = { url: `redis://gateway:${password}@10.0.0.9:6379`, maxConcurrency: 4, ...more };
      return loadGatewayConfig({ ...before, sharedState });
    };
    expect(changesBetween(shared('old'), shared('new', { maxConcurrency: 8 }))).toEqual([
      'sharedState.store.login.password: changed',
      'sharedState.limit: 4 → 8',
    ]);
    expect(changesBetween(loadGatewayConfig(before), shared('new'))).toEqual(['sharedState: added']);
  });
});
