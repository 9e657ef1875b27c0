/** The sections of a gateway file and their defaults. */
import * as z from 'zod/mini';
import { list, object, orEmpty, record } from '../../base/schema/containers.js';
import { parseDuration } from '../../base/schema/duration.js';
import { anything, element, optional, value } from '../../base/schema/element.js';
import { validate } from '../../base/schema/parse.js';
import {
  aboveZero,
  duration,
  flag,
  integer,
  oneOf,
  positiveDuration,
  quantity,
  text,
} from '../../base/schema/types.js';
import type { Schema } from '../../index.js';
import { type MetricProfile, metricProfiles } from '../../upstream/index.js';
import type { GatewayFile } from './gateway-file.js';
import { type SecretSources, secret, section } from './secrets.js';

const profiles = [...Object.keys(metricProfiles), 'none'] as readonly (MetricProfile | 'none')[];

const isPath = (candidate: unknown): candidate is string => typeof candidate === 'string' && candidate.startsWith('/');
const path = value('a path such as "/health"', isPath);

/** Without a path that ends in /v1, which the requests bring along, and without a query. */
const url: Schema<string> = element((candidate, report) => {
  const parsed = typeof candidate === 'string' ? parseUrl(candidate) : undefined;
  if (parsed === undefined || !/^https?:$/.test(parsed.protocol) || parsed.search !== '' || parsed.username !== '') {
    report('a URL of http or https without query and credentials, such as "http://10.0.0.1:8000"');
    return undefined;
  }
  const base = parsed.pathname.replace(/\/+$/, '');
  if (/\/v1$/.test(base)) report('a URL without "/v1", which comes with each request');
  return parsed.origin + base;
});

function parseUrl(candidate: string): URL | undefined {
  try {
    return new URL(candidate);
  } catch {
    return undefined;
  }
}

const expectedOrigins = '"*", or a list of origins such as "https://chat.example.com"';

/** As browsers write them, so that they can be compared. */
const origins: Schema<'*' | readonly string[]> = element((candidate, report) => {
  if (candidate === '*') return candidate;
  if (!Array.isArray(candidate)) {
    report(expectedOrigins);
    return undefined;
  }
  for (const [index, origin] of candidate.entries()) {
    if (typeof origin !== 'string' || parseUrl(origin)?.origin !== origin)
      report('an origin such as "https://chat.example.com"', [index]);
  }
  return candidate;
});

const port = integer({ from: 0, to: 65_535 });

/** As much as limits a size: from 1 byte up, and not unlimited. */
const size: Schema<number> = element((candidate, report) => {
  const verdict = validate(quantity('4Mi'), candidate);
  if (verdict.ok && verdict.value >= 1 && verdict.value < Infinity) return verdict.value;
  report('a size from 1 up, such as "4Mi"');
  return Number.NaN;
});

/** A span of time in ms, `usual` where the file has none. */
function span(usual: string, schema: (example: string) => Schema<number> = positiveDuration): Schema<number> {
  return optional(schema(usual), parseDuration(usual));
}

/** What `schema` reads, under the names of the configuration, where what has no default is undefined. */
function named<T extends object, C>(schema: Schema<T>, rename: (read: T) => C): Schema<C> {
  return z.pipe(schema, z.transform(rename)) as Schema<unknown> as Schema<C>;
}

const isFallback = (candidate: unknown): candidate is 'safe' | 'closed' | number =>
  candidate === 'safe' ||
  candidate === 'closed' ||
  (typeof candidate === 'number' && Number.isInteger(candidate) && candidate >= 0);
const fallback = value('"safe", "closed", or a limit: an integer from 0 up', isFallback);

/** The priority of a name that was not given stays open until the objectives are known. */
const sender = {
  tenant: text('the name of a tenant'),
  objective: optional(text('the name of an objective')),
  priority: optional(integer()),
  trusted: optional(flag(), false),
};

const openTelemetry = named(
  object({
    metrics: optional(flag(), true),
    traces: optional(flag(), true),
    pool: optional(text()),
    fairnessIds: optional(flag(), false),
  }),
  ({ pool, ...rest }) => ({ ...rest, pool }),
);

/** Without defaults: whether the section is there at all, and what else it says, matters to `enabled`. */
const scrape = object({
  enabled: optional(flag()),
  interval: optional(positiveDuration('50ms')),
  idleInterval: optional(positiveDuration('1s')),
  timeout: optional(positiveDuration('1s')),
  path: optional(path),
  stalenessThreshold: optional(positiveDuration('200ms')),
});

const health = named(
  object({
    interval: span('2s'),
    timeout: span('1s'),
    failures: optional(integer({ from: 1 }), 3),
    successes: optional(integer({ from: 1 }), 1),
    whenAllSilent: optional(oneOf('keep', 'ill'), 'keep'),
  }),
  ({ interval, timeout, ...rest }) => ({ intervalMs: interval, timeoutMs: timeout, ...rest }),
);

const timeouts = named(
  object({
    connect: span('5s'),
    upload: span('10s'),
    firstToken: optional(positiveDuration('5s')),
    firstTokenByModel: optional(record(positiveDuration('60s')), {}),
    firstByte: span('5m'),
    idle: span('60s'),
    total: span('30m'),
  }),
  ({ connect, upload, firstToken, firstTokenByModel, firstByte, idle, total }) => ({
    connectMs: connect,
    uploadMs: upload,
    firstTokenMs: firstToken,
    firstTokenMsByModel: firstTokenByModel,
    firstByteMs: firstByte,
    idleMs: idle,
    totalMs: total,
  }),
);

const limits = named(
  object({
    maxRequestBytes: optional(size, 8 * 2 ** 20),
    maxReadingBytes: optional(size, 256 * 2 ** 20),
    maxHeaderBytes: optional(size, 16_384),
    minUploadRate: optional(size, 4_096),
    maxConnections: optional(integer({ from: 1 }), 16_384),
  }),
  ({ minUploadRate, ...rest }) => ({ ...rest, minUploadBytesPerSecond: minUploadRate }),
);

const retry = named(
  object({
    enabled: optional(flag(), true),
    max: optional(integer({ from: 0, to: 100 }), 1),
    maxBodyBytes: optional(size, 2 ** 20),
    avoidFor: span('5s'),
  }),
  ({ avoidFor, ...rest }) => ({ ...rest, avoidForMs: avoidFor }),
);

const models = named(
  object({
    aliases: optional(record(text('the name of a model')), {}),
    list: optional(list(text('the name of a model'))),
  }),
  ({ aliases, list }) => ({ aliases, list }),
);

const cors = named(object({ origins, maxAge: span('10m', duration) }), ({ maxAge, ...rest }) => {
  return { ...rest, maxAgeMs: maxAge };
});

const drain = named(
  object({ delay: span('3s', duration), waiting: span('5s'), streams: span('20s') }),
  ({ delay, waiting, streams }) => ({ delayMs: delay, waitingMs: waiting, streamsMs: streams }),
);

const log = object({
  format: optional(oneOf('json', 'text'), 'text'),
  requests: optional(flag(), true),
  tenants: optional(flag(), true),
});

/** Sections of flow control, which `headgate/config` reads. */
const elsewhere: Schema<unknown> = anything();

/** The schema of a file, whose secrets come from `sources`. */
export function fileSchema(sources: SecretSources): Schema<GatewayFile> {
  const aSecret = secret(sources);
  const admin = object({
    host: optional(text()),
    port: optional(port),
    token: optional(aSecret),
    hosts: optional(list(text('a name without a port')), []),
  });
  const inspector = object({
    path: optional(path, '/inspector'),
    password: optional(aSecret),
    fairnessIds: optional(oneOf('shown', 'hidden'), 'shown'),
  });
  const demand = object({ path: optional(path, '/demand'), token: optional(aSecret) });
  const upstream = object({
    id: text('the name of a model server'),
    url,
    labels: optional(record(text()), {}),
    weight: optional(aboveZero(), 1),
    metrics: optional(oneOf(...profiles)),
    healthPath: optional(path),
    apiKey: optional(aSecret),
  });
  const auth = object({
    keys: optional(section(list(section(object({ key: aSecret, ...sender }))), 'an array'), []),
    anonymous: optional(object(sender)),
  });
  return object({
    listen: object({ host: optional(text(), '127.0.0.1'), port }),
    admin: orEmpty(section(admin)),
    inspector: optional(section(inspector)),
    demand: orEmpty(named(section(demand), ({ token, ...rest }) => ({ ...rest, token }))),
    openTelemetry: optional(openTelemetry),
    upstreams: list(
      named(upstream, ({ metrics: profile, healthPath, apiKey, ...rest }) => ({
        ...rest,
        profile,
        healthPath,
        apiKey,
      })),
    ),
    scrape: optional(scrape),
    health: orEmpty(health),
    timeouts: orEmpty(timeouts),
    limits: orEmpty(limits),
    forwarded: optional(oneOf('set', 'pass'), 'set'),
    retry: orEmpty(retry),
    auth: orEmpty(section(auth)),
    objectives: optional(record(integer()), {}),
    models: orEmpty(models),
    cors: optional(cors),
    drain: orEmpty(drain),
    log: orEmpty(log),
    contract: optional(oneOf('gateway-api', 'llm-d', 'dynamo'), 'gateway-api'),
    bandHeadroom: optional(flag(), false),
    sharedState: optional(
      object({
        url: aSecret,
        pool: optional(text('the name of the pool')),
        prefix: optional(text('the beginning of all keys')),
        maxConcurrency: optional(integer({ from: 1 })),
        maxTokens: optional(integer({ from: 1 })),
        endpointConcurrency: optional(integer({ from: 1 })),
        quotas: optional(flag()),
        replicas: optional(integer({ from: 1 })),
        maxShare: optional(integer({ from: 1 })),
        fallback: optional(fallback),
        refreshInterval: optional(positiveDuration('1s')),
        leaseDuration: optional(positiveDuration('5s')),
        drainDuration: optional(positiveDuration('60s')),
        forgetAfter: optional(positiveDuration('10m')),
        callTimeout: optional(positiveDuration('50ms')),
      }),
    ),
    plugins: elsewhere,
    saturationDetector: elsewhere,
    flowControl: elsewhere,
  });
}
