/** The sections of a gateway file and their defaults. `plugins` and `flowControl` are read by `headgate/config`. */
import { type Schema, schemas } from '../index.js';
import { type MetricProfile, metricProfiles } from '../upstream/index.js';
import type { GatewayFile } from './gateway-file.js';
import { type SecretSources, secret, section } from './secrets.js';

const {
  aboveZero,
  anything,
  flag,
  integer,
  list,
  object,
  oneOf,
  optional,
  positiveDuration,
  quantity,
  record,
  text,
  value,
} = schemas;

const profiles = [...Object.keys(metricProfiles), 'none'] as readonly (MetricProfile | 'none')[];

const isPath = (candidate: unknown): candidate is string => typeof candidate === 'string' && candidate.startsWith('/');
const path = value('a path such as "/health"', isPath);

/** Without a path that ends in /v1, which the requests bring along, and without a query. */
const url: Schema<string> = schemas.element((candidate, report) => {
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
const origins: Schema<'*' | readonly string[]> = schemas.element((candidate, report) => {
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
const address = object({ host: optional(text()), port });

/** As much as limits a size: from 1 byte up, and not unlimited. */
const size: Schema<number> = schemas.element((candidate, report) => {
  const verdict = schemas.validate(quantity('4Mi'), candidate);
  if (verdict.ok && verdict.value >= 1 && verdict.value < Infinity) return verdict.value;
  report('a size from 1 up, such as "4Mi"');
  return Number.NaN;
});

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
  trusted: optional(flag()),
};

const scrape = object({
  enabled: optional(flag()),
  interval: optional(positiveDuration('50ms')),
  idleInterval: optional(positiveDuration('1s')),
  timeout: optional(positiveDuration('1s')),
  path: optional(path),
  stalenessThreshold: optional(positiveDuration('200ms')),
});

const timeouts = object({
  connect: optional(positiveDuration('5s')),
  upload: optional(positiveDuration('10s')),
  firstToken: optional(positiveDuration('5s')),
  firstTokenByModel: optional(record(positiveDuration('60s'))),
  firstByte: optional(positiveDuration('5m')),
  idle: optional(positiveDuration('60s')),
  total: optional(positiveDuration('30m')),
});

const limits = object({
  maxRequestBytes: optional(size),
  maxReadingBytes: optional(size),
  maxHeaderBytes: optional(size),
  minUploadRate: optional(size),
  maxConnections: optional(integer({ from: 1 })),
});

const drain = object({
  delay: optional(schemas.duration('3s')),
  waiting: optional(positiveDuration('5s')),
  streams: optional(positiveDuration('20s')),
});

/** The schema of a file, whose secrets come from `sources`. */
export function fileSchema(sources: SecretSources): Schema<GatewayFile> {
  const aSecret = secret(sources);
  return object({
    listen: address,
    admin: optional(
      section(
        object({
          host: optional(text()),
          port: optional(port),
          token: optional(aSecret),
          hosts: optional(list(text('a name without a port'))),
        }),
      ),
    ),
    inspector: optional(
      section(
        object({ path: optional(path), password: optional(aSecret), fairnessIds: optional(oneOf('shown', 'hidden')) }),
      ),
    ),
    demand: optional(section(object({ path: optional(path), token: optional(aSecret) }))),
    openTelemetry: optional(
      object({
        metrics: optional(flag()),
        traces: optional(flag()),
        pool: optional(text()),
        fairnessIds: optional(flag()),
      }),
    ),
    upstreams: list(
      object({
        id: text('the name of a model server'),
        url,
        labels: optional(record(text())),
        weight: optional(aboveZero()),
        metrics: optional(oneOf(...profiles)),
        healthPath: optional(path),
        apiKey: optional(aSecret),
      }),
    ),
    scrape: optional(scrape),
    health: optional(
      object({
        interval: optional(positiveDuration('2s')),
        timeout: optional(positiveDuration('1s')),
        failures: optional(integer({ from: 1 })),
        successes: optional(integer({ from: 1 })),
        whenAllSilent: optional(oneOf('keep', 'ill')),
      }),
    ),
    timeouts: optional(timeouts),
    limits: optional(limits),
    forwarded: optional(oneOf('set', 'pass')),
    retry: optional(
      object({
        enabled: optional(flag()),
        max: optional(integer({ from: 0, to: 100 })),
        maxBodyBytes: optional(size),
        avoidFor: optional(positiveDuration('5s')),
      }),
    ),
    auth: optional(
      section(
        object({
          keys: optional(section(list(section(object({ key: aSecret, ...sender }))))),
          anonymous: optional(object(sender)),
        }),
      ),
    ),
    objectives: optional(record(integer())),
    models: optional(
      object({
        aliases: optional(record(text('the name of a model'))),
        list: optional(list(text('the name of a model'))),
      }),
    ),
    cors: optional(object({ origins, maxAge: optional(schemas.duration('10m')) })),
    drain: optional(drain),
    log: optional(
      object({ format: optional(oneOf('json', 'text')), requests: optional(flag()), tenants: optional(flag()) }),
    ),
    contract: optional(oneOf('gateway-api', 'llm-d', 'dynamo')),
    bandHeadroom: optional(flag()),
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
    plugins: anything(),
    saturationDetector: anything(),
    flowControl: anything(),
  });
}
