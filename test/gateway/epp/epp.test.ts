/** The program without its command: real gRPC on one side, real model servers on the other. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Client } from '@grpc/grpc-js';
import { Registry } from 'prom-client';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createEpp, type Epp, loadEppConfig } from '../../../src/gateway/index.js';
import { connectTo, ProxyStream } from '../../conformance/epp/fake-envoy.js';
import { ModelServers } from '../../conformance/epp/model-servers.js';

let folder: string;
let servers: ModelServers;
let epp: Epp | undefined;
let client: Client | undefined;
let lines: [event: string, fields: Record<string, unknown>][];

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'headgate-epp-test-'));
  servers = await ModelServers.start([{}, {}]);
  lines = [];
  list(0, 1);
});
afterEach(async () => {
  client?.close();
  client = undefined;
  await epp?.close();
  epp = undefined;
  servers.stop();
  rmSync(folder, { recursive: true });
});

function list(...indices: number[]): void {
  const endpoints = indices.map((n) => ({ name: `s${n}`, address: servers.addressOf(n), port: String(servers.port) }));
  writeFileSync(join(folder, 'endpoints.yaml'), JSON.stringify({ endpoints }));
}

interface Given {
  readonly plugins?: readonly object[];
  readonly own?: object;
  readonly objects?: readonly object[];
  readonly [section: string]: unknown;
}

/** Three seats at each server, unless told otherwise. */
function fileOf({ plugins = [], own = {}, objects = [], ...sections }: Given = {}): string {
  const parameters = { path: join(folder, 'endpoints.yaml'), watchFile: true };
  const document = {
    apiVersion: 'llm-d.ai/v1alpha1',
    kind: 'EndpointPickerConfig',
    featureGates: ['flowControl'],
    plugins: [
      { type: 'file-discovery', parameters },
      { type: 'concurrency-detector', parameters: { maxConcurrency: 3 } },
      ...plugins,
    ],
    saturationDetector: { pluginRef: 'concurrency-detector' },
    headgate: { host: '127.0.0.1', port: 0, healthPort: 0, metricsPort: 0, drainStreams: '100ms', trust: true, ...own },
    ...sections,
  };
  return [document, ...objects].map((each) => JSON.stringify(each)).join('\n---\n');
}

async function start(given?: Given): Promise<Epp> {
  epp = await createEpp(loadEppConfig(fileOf(given)), {
    log: (_level, event, fields) => lines.push([event, fields ?? {}]),
  });
  client = connectTo(epp.ports.port);
  return epp;
}

const bytes = (text: string): Buffer => Buffer.from(text);
const prompt = '{"model":"chat","prompt":"a"}';

function ask(body = prompt, headers: Record<string, string> = {}): ProxyStream {
  const stream = new ProxyStream(client!);
  const all = { ':path': '/v1/completions', ...headers };
  const list = Object.entries(all).map(([key, value]) => ({ key, rawValue: bytes(value) }));
  stream.send({ requestHeaders: { headers: { headers: list } } });
  stream.send({ requestBody: { body: bytes(body), endOfStream: true } });
  return stream;
}

const usage = '"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}';

function answer(stream: ProxyStream, body = `{"model":"chat",${usage}}`, status = '200'): void {
  const headers = [
    { key: ':status', rawValue: bytes(status) },
    { key: 'content-type', rawValue: bytes('application/json') },
  ];
  stream.send({ responseHeaders: { headers: { headers } } });
  stream.send({ responseBody: { body: bytes(body), endOfStream: true } });
}

const destination = (stream: ProxyStream): string | undefined =>
  stream.toServer.seen?.get('x-gateway-destination-endpoint');
const goes = (stream: ProxyStream) => vi.waitFor(() => expect(destination(stream)).toMatch(/^127\.0\.0\.[23]:/), 5_000);
const isRefused = (stream: ProxyStream, status: number) =>
  vi.waitFor(() => expect(stream.immediate?.status).toBe(status), 5_000);

describe('a request', () => {
  it('goes to a server of the file, and is one line of the log with what it cost', async () => {
    await start();
    const stream = ask(prompt, { 'x-llm-d-inference-fairness-id': 'acme' });
    await goes(stream);
    answer(stream);
    await vi.waitFor(() => expect(lines.some(([event]) => event === 'request')).toBe(true), 5_000);
    const [, fields] = lines.find(([event]) => event === 'request') ?? [];
    expect(fields).toMatchObject({ tenant: 'acme', model: 'chat', status: 200, promptTokens: 7, completionTokens: 3 });
    expect(['s0', 's1']).toContain(fields?.endpoint);
    expect(epp?.flow.stats()).toMatchObject({ inFlight: 0, waiting: 0, dispatched: 1 });
  });

  it('waits while every server is full, and goes where a seat is free', async () => {
    const { flow } = await start();
    const running = Array.from({ length: 6 }, () => ask());
    await Promise.all(running.map(goes));
    const late = ask();
    await vi.waitFor(() => expect(flow.stats().waiting).toBe(1), 5_000);
    answer(running[2]!);
    await goes(late);
    expect(destination(late)).toBe(destination(running[2]!));
  });

  it('that cannot be read is refused, and counted, whatever the load', async () => {
    const { ports } = await start();
    const running = Array.from({ length: 6 }, () => ask());
    await Promise.all(running.map(goes));
    await isRefused(ask('{"model":'), 400);
    const refused = ask('{"model":"chat"}');
    await isRefused(refused, 400);
    expect(JSON.parse(refused.immediate?.body ?? '')).toMatchObject({ error: { type: 'invalid_request_error' } });
    const text = await (await fetch(`http://127.0.0.1:${ports.metricsPort}/metrics`)).text();
    expect(text).toMatch(/llm_d_epp_request_error_total\{.*error_code="BadRequest"\} 2/);
    expect(text).toMatch(/llm_d_epp_running_requests 6/);
    expect(text).toMatch(/llm_d_epp_ready_endpoints 2/);
  });

  it('is for the model that a rule says; the client reads its own name', async () => {
    const spec = { rules: [{ matches: [{ model: { value: 'chat' } }], targets: [{ modelRewrite: 'llama-3' }] }] };
    await start({ objects: [{ apiVersion: 'llm-d.ai/v1alpha2', kind: 'InferenceModelRewrite', spec }] });
    const stream = ask('{"n":1.0,"model" : "chat","prompt":"a"}');
    await goes(stream);
    await vi.waitFor(() => expect(stream.toServer.isOver).toBe(true), 5_000);
    expect(stream.toServer.body).toBe('{"n":1.0,"model" : "llama-3","prompt":"a"}');
    answer(stream, `{"model":"llama-3",${usage}}`);
    await vi.waitFor(() => expect(stream.toClient.isOver).toBe(true), 5_000);
    expect(stream.toClient.body).toBe(`{"model":"chat",${usage}}`);
  });

  it('of an objective has its priority', async () => {
    const objective = (name: string, priority: number) => ({
      apiVersion: 'llm-d.ai/v1alpha2',
      kind: 'InferenceObjective',
      metadata: { name },
      spec: { priority },
    });
    const { flow } = await start({ objects: [objective('batch', -10), objective('vip', 10)] });
    const running = Array.from({ length: 6 }, () => ask());
    await Promise.all(running.map(goes));
    const waiting: ProxyStream[] = [];
    for (const [n, name] of ['batch', 'vip'].entries()) {
      waiting.push(ask(prompt, { 'x-llm-d-inference-objective': name }));
      await vi.waitFor(() => expect(flow.stats().waiting).toBe(n + 1), 5_000);
    }
    answer(running[0]!);
    await goes(waiting[1]!);
    expect(flow.stats().waiting).toBe(1);
    answer(running[1]!);
    await goes(waiting[0]!);
  });

  it('tells the proxy of its usage what the file asks for, and goes on where an expression fails', async () => {
    const attribute = (name: string, expression: string, condition?: string) => ({
      key: { name },
      expression,
      condition,
    });
    const attributes = [
      attribute('tokens', 'double(usage.prompt_tokens) + double(usage.completion_tokens) * 2.0'),
      attribute('never', '1', 'usage.total_tokens > 99'),
    ];
    await start({ plugins: [{ type: 'request-attribute-reporter', parameters: { attributes } }] });
    const stream = ask();
    await goes(stream);
    answer(stream);
    await vi.waitFor(() => expect(stream.told.get('envoy.lb')?.get('tokens')).toBe(13), 5_000);
    expect(stream.told.get('envoy.lb')?.has('never')).toBe(false);
  });

  it('whose client leaves frees its place at once', async () => {
    const { flow } = await start();
    const running = Array.from({ length: 6 }, () => ask());
    await Promise.all(running.map(goes));
    const leaving = ask();
    await vi.waitFor(() => expect(flow.stats().waiting).toBe(1), 5_000);
    leaving.cancel();
    await vi.waitFor(() => expect(flow.stats().waiting).toBe(0), 5_000);
    for (const stream of running) stream.cancel();
    await vi.waitFor(() => expect(flow.stats().inFlight).toBe(0), 5_000);
  });
});

describe('a scrape', () => {
  it('of what cannot be read is 500, and the picker goes on', async () => {
    const { ports } = await start();
    const url = `http://127.0.0.1:${ports.metricsPort}/metrics`;
    const broken = vi.spyOn(Registry.prototype, 'metrics').mockRejectedValueOnce(new Error('no figures'));
    expect((await fetch(url)).status).toBe(500);
    broken.mockRestore();
    expect((await fetch(url)).status).toBe(200);
    await goes(ask());
  });
});

describe('scores', () => {
  it('are told with the choice, and the server with the higher one gets the request', async () => {
    servers.change(0, { waiting: 50 });
    const schedulingProfiles = [{ name: 'p', plugins: [{ pluginRef: 'queue-scorer' }] }];
    const { pool } = await start({ schedulingProfiles, own: { emitScores: true } });
    await vi.waitFor(() => expect(pool.endpoints[0]?.metrics?.waitingQueueSize).toBe(50), 5_000);
    const stream = ask();
    await goes(stream);
    expect(destination(stream)).toBe(`${servers.addressOf(1)}:${servers.port}`);
    expect(stream.told.get('envoy.lb')?.get('x-gateway-destination-endpoint-scores')).toMatchObject({
      [`${servers.addressOf(1)}:${servers.port}`]: 1,
    });
  });
});

describe('a file that changes', () => {
  it('of endpoints counts at once; a request that waited for a server gets it', async () => {
    list();
    await start();
    const stream = ask();
    await vi.waitFor(() => expect(epp?.flow.stats().waiting).toBe(1), 5_000);
    list(1);
    await goes(stream);
  });

  it('puts limits into force; what has faults changes nothing, and drops nothing', async () => {
    const running = await start();
    const streams = Array.from({ length: 6 }, () => ask());
    await Promise.all(streams.map(goes));
    const waiting = ask();
    await vi.waitFor(() => expect(running.flow.stats().waiting).toBe(1), 5_000);
    const broken = {
      type: 'request-attribute-reporter',
      parameters: { attributes: [{ key: { name: 'x' }, expression: '1 +' }] },
    };
    expect(() => running.reconfigure(loadEppConfig(fileOf({ plugins: [broken] })))).toThrow(/CEL/);
    running.reconfigure(loadEppConfig(fileOf({ flowControl: { maxRequests: 1 }, own: { contract: 'gateway-api' } })));
    await isRefused(ask(), 429);
    answer(streams[0]!);
    await goes(waiting);
  });
});

describe('a reload that fails', () => {
  it('because of the endpoints leaves everything as it was', async () => {
    const running = await start();
    const elsewhere = fileOf({ own: { contract: 'gateway-api' }, flowControl: { maxRequests: 1 } });
    const wrong = loadEppConfig(elsewhere.replaceAll('endpoints.yaml', 'nowhere.yaml'));
    expect(() => running.reconfigure(wrong)).toThrow(/ENOENT/);
    const streams = Array.from({ length: 6 }, () => ask());
    await Promise.all(streams.map(goes));
    const waiting = [ask(), ask()];
    await vi.waitFor(() => expect(running.flow.stats().waiting).toBe(2), 5_000);
    expect(waiting.map(({ immediate }) => immediate)).toEqual([undefined, undefined]);
    list(1);
    await vi.waitFor(() => expect(running.pool.endpoints.map(({ id }) => id)).toEqual(['s1']), 5_000);
  });
});

describe('at the end', () => {
  it('is not ready, lets what waits go on, and then answers the rest', async () => {
    const running = await start({ own: { drain: '300ms' } });
    const ready = (): Promise<number> =>
      fetch(`http://127.0.0.1:${running.ports.metricsPort}/readyz`).then((r) => r.status);
    expect(await ready()).toBe(200);
    const streams = Array.from({ length: 6 }, () => ask());
    await Promise.all(streams.map(goes));
    const [first, second] = [ask(), ask()];
    await vi.waitFor(() => expect(running.flow.stats().waiting).toBe(2), 5_000);
    const closed = running.close();
    expect(await ready()).toBe(503);
    answer(streams[0]!);
    await goes(first);
    await isRefused(second, 503);
    expect(await closed).toMatchObject({ waiting: 0, inFlight: 0 });
    expect(running.close()).toBe(running.close());
  });

  it('does not begin where a port is taken, and nothing stays open', async () => {
    const { ports } = await start();
    const taken = loadEppConfig(fileOf({ own: { metricsPort: ports.metricsPort } }));
    await expect(createEpp(taken)).rejects.toThrow(/EADDRINUSE/);
  });
});
