/** The steps of a vector, one function for each; what nobody knows is a fault of the player, and fails. */
import { setTimeout as delay } from 'node:timers/promises';
import { type Client, credentials, makeClientConstructor, type ServiceError } from '@grpc/grpc-js';
import { service as health } from 'grpc-health-check';
import { expect, vi } from 'vitest';
import type { ProcessingRequest, Value } from '../../../src/adapters/ext-proc/messages.js';
import type { Epp } from '../../../src/gateway/index.js';
import { differs } from './differences.js';
import { ProxyStream, type Side } from './fake-envoy.js';
import type { Json } from './json.js';
import { compareSamples } from './metrics.js';
import type { Load, ModelServers } from './model-servers.js';
import { seesBody, seesHeaders, seesRefusal } from './what-is-seen.js';

/** One vector that is being played. */
export interface Play {
  readonly epp: Epp;
  readonly client: Client;
  readonly servers: ModelServers;
  readonly streams: Map<string, ProxyStream>;
  /** What the reference sent of bodies until now. */
  readonly bodies: Map<Side, string>;
  /** Which servers the endpoints' file lists from now on. */
  list(indices: readonly number[]): void;
}

const partNames: Readonly<Record<string, keyof ProcessingRequest>> = {
  request_headers: 'requestHeaders',
  response_headers: 'responseHeaders',
  request_body: 'requestBody',
  response_body: 'responseBody',
  request_trailers: 'requestTrailers',
  response_trailers: 'responseTrailers',
};
const modes: Readonly<Record<string, number>> = {
  NONE: 0,
  STREAMED: 1,
  BUFFERED: 2,
  BUFFERED_PARTIAL: 3,
  FULL_DUPLEX_STREAMED: 4,
};

/** Names of servers become addresses. */
function fill({ servers }: Play, text: string): string {
  return text
    .replace(/\{server-(\d+)\.ip\}/g, (_, n) => servers.addressOf(Number(n)))
    .replace(/\{server-(\d+)\}/g, (_, n) => `${servers.addressOf(Number(n))}:${servers.port}`);
}

function bytesOf(body: string | Json = ''): Buffer {
  if (typeof body === 'string') return Buffer.from(body);
  if (body.base64 !== undefined) return Buffer.from(body.base64, 'base64');
  return Buffer.from(body.before + body.repeat.repeat(body.bytes / body.repeat.length) + body.after);
}

function asValue(value: unknown): Value {
  if (typeof value === 'string') return { stringValue: value };
  if (typeof value === 'number') return { numberValue: value };
  if (Array.isArray(value)) return { listValue: { values: value.map(asValue) } };
  return { structValue: { fields: mapped(value as Json, asValue) } };
}

function mapped<T>(object: Json, of: (value: unknown) => T): Record<string, T> {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, of(value)]));
}

/** One part of an exchange as a message; headers are remembered as those of their side. */
function partOf(play: Play, stream: ProxyStream, part: string, content: Json): object {
  if (part.endsWith('_body')) return { body: bytesOf(content.body), endOfStream: content.end_of_stream === true };
  if (part.endsWith('_trailers')) return {};
  const given: [string, string | Json][] = Array.isArray(content.headers)
    ? content.headers
    : Object.entries(content.headers);
  const pairs = given.map(([key, value]) => [key, typeof value === 'string' ? value : value.value] as const);
  const side = part === 'request_headers' ? stream.toServer : stream.toClient;
  side.sent = new Map(pairs.map(([key, value]) => [key.toLowerCase(), fill(play, value)]));
  const headers = pairs.map(([key, value], index) =>
    typeof given[index]?.[1] === 'string'
      ? { key, rawValue: Buffer.from(fill(play, value)) }
      : { key, value: fill(play, value) },
  );
  return { headers: { headers }, endOfStream: content.end_of_stream === true };
}

function send(play: Play, stream: ProxyStream, message: Json): void {
  const sent: Record<string, unknown> = {};
  for (const [key, content] of Object.entries(message)) {
    const name = partNames[key];
    if (name !== undefined) sent[name] = partOf(play, stream, key, content);
    else if (key === 'metadata_context') {
      const filled = JSON.parse(fill(play, JSON.stringify(content)));
      sent.metadataContext = { filterMetadata: mapped(filled, (each) => ({ fields: mapped(each as Json, asValue) })) };
    } else if (key === 'protocol_config') {
      const { request_body_mode, response_body_mode } = content;
      sent.protocolConfig = { requestBodyMode: modes[request_body_mode], responseBodyMode: modes[response_body_mode] };
    } else if (key !== 'attributes') throw new Error(`send: a part that nobody knows: ${key}`);
  }
  stream.send(sent as ProcessingRequest);
}

async function receive(play: Play, stream: ProxyStream, messages: readonly Json[], withinMs: number): Promise<void> {
  const until = (check: () => void): Promise<void> => vi.waitFor(check, { timeout: withinMs, interval: 10 });
  for (const { dynamic_metadata, ...message } of messages) {
    const [[part, content]] = Object.entries(message) as [[string, Json]];
    if (part === 'immediate_response') await until(() => seesRefusal(stream.immediate, content));
    else if (part === 'response_trailers') await until(() => expect(stream.toClient.isOver).toBe(true));
    else {
      const side = part.startsWith('request') ? stream.toServer : stream.toClient;
      if (part.endsWith('_headers')) await until(() => seesHeaders(side, content, (text) => fill(play, text)));
      else if (part.endsWith('_body')) await seesBody(play.bodies, side, content, until);
      else throw new Error(`receive: a part that nobody knows: ${part}`);
    }
    for (const [namespace, values] of Object.entries(dynamic_metadata ?? {}))
      for (const [name, value] of Object.entries(JSON.parse(fill(play, JSON.stringify(values)))))
        await until(() => expect(stream.told.get(namespace)?.get(name), name).toEqual(value));
  }
}

const Health = makeClientConstructor(health, 'Health');
const noSuchMethod = 12;

async function askHealth(
  { epp: { ports } }: Play,
  { port, service = '', method = 'Check' }: Json,
  answer: Json,
): Promise<void> {
  const number = port === 'main' ? ports.port : ports.healthPort;
  const client = new Health(`127.0.0.1:${number}`, credentials.createInsecure());
  try {
    const got = await new Promise<Json>((resolve) => {
      const done = (error: ServiceError | null, response: Json = {}): void =>
        resolve(error ? { error: error.code } : response);
      if (method === 'Watch') {
        const watch = client.Watch!({ service });
        watch.once('data', (response: Json) => done(null, response)).on('error', done);
      } else if (client[method] === undefined) resolve({ error: noSuchMethod });
      else client[method]({ service }, done);
    });
    const { details: _, ...expected } = answer;
    expect(got).toMatchObject(expected);
  } finally {
    client.close();
  }
}

/** The chosen server is really asked, and what it answers goes to the picker as a proxy would send it. */
async function proxy(stream: ProxyStream, path: string): Promise<void> {
  const destination = stream.toServer.seen?.get('x-gateway-destination-endpoint');
  const body = Buffer.from(stream.toServer.body, 'latin1');
  const answer = await fetch(`http://${destination}${path}`, { method: 'POST', body });
  const pairs: [string, string][] = [
    [':status', String(answer.status)],
    ['content-type', answer.headers.get('content-type') ?? ''],
  ];
  stream.toClient.sent = new Map(pairs);
  const headers = pairs.map(([key, value]) => ({ key, rawValue: Buffer.from(value) }));
  stream.send({ responseHeaders: { headers: { headers } } });
  stream.send({ responseBody: { body: Buffer.from(await answer.arrayBuffer()), endOfStream: true } });
}

type Step = (play: Play, step: Json, stream: ProxyStream) => Promise<void> | void;

/** Of a busy machine, for what must come. */
const patienceMs = 10_000;

const settled = ({ settleMs = 300 }: Json): Promise<void> => delay(settleMs);

/** By the field that a step has. */
const steps: Readonly<Record<string, Step>> = {
  send: (play, step, stream) => send(play, stream, step.send),
  receive: (play, { receive: messages, loose, withinMs = 0, tookMs = 0 }, stream) =>
    receive(play, stream, messages, loose ? 300 : Math.max(withinMs, tookMs + patienceMs)),
  async silentMs(_play, { silentMs }, stream) {
    const { messages, immediate } = stream;
    const { seen } = stream.toServer;
    await delay(silentMs);
    expect([stream.toServer.seen, stream.immediate]).toEqual([seen, immediate]);
    if (stream.messages > messages) differs('size of pieces');
  },
  close: (_play, _step, stream) => stream.close(),
  cancel: (_play, _step, stream) => stream.cancel(),
  end: (_play, { end }, stream) =>
    vi.waitFor(() => expect(stream.status?.code).toBe(end.code), { timeout: patienceMs, interval: 10 }),
  async servers(play, step) {
    for (const [index, load] of Object.entries(step.servers)) play.servers.change(Number(index), load as Load);
    await settled(step);
  },
  async endpoints(play, step) {
    play.list(step.endpoints);
    await settled(step);
  },
  health: (play, step) => askHealth(play, step.health, step.answer),
  scrape: ({ epp, streams }, { samples }) => {
    const hasCancelled = [...streams.values()].some(({ isCancelled }) => isCancelled);
    return vi.waitFor(() => compareSamples(epp.ports.metricsPort, samples, hasCancelled), {
      timeout: patienceMs,
      interval: 50,
    });
  },
  signal(play) {
    void play.epp.close();
  },
  async exit(play, { exit }) {
    await play.epp.close();
    expect(exit.code).toBe(0);
  },
  proxy: (_play, step, stream) => proxy(stream, step.proxy),
  waitMs: (_play, { waitMs }) => delay(waitMs),
};

/** Plays a step. @throws when what comes is not what the reference gave; of loose steps never */
export async function takeStep(play: Play, step: Json): Promise<void> {
  const [kind, ...others] = Object.keys(steps).filter((name) => name in step);
  if (kind === undefined || others.length > 0)
    throw new Error(`expected one step of ${Object.keys(steps).join(', ')}; got ${Object.keys(step).join(', ')}`);
  const stream = play.streams.get(step.on) ?? (step.on === undefined ? undefined : new ProxyStream(play.client));
  if (stream !== undefined) play.streams.set(step.on, stream);
  try {
    await steps[kind]?.(play, step, stream as ProxyStream);
  } catch (error) {
    if (step.loose !== true) throw error;
    differs('loose steps');
  }
}
