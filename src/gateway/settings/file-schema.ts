/**
 * The table of a gateway file: every key with what it takes, what holds without it, and one sentence. It reads files,
 * it is what editors know of them (`headgate schema gateway`), and the reference page is made of it.
 * Spans of time are read as ms.
 */
import { option, row } from '../../base/schema/json-schema.js';
import * as s from '../../base/schema/schema.js';
import { flowSectionsJson } from '../../config/index.js';
import type { Duration, Quantity, Schema } from '../../index.js';
import { type MetricProfile, metricProfiles, type RankDialect } from '../../upstream/index.js';
import { isRankField } from '../bodies/generation-body.js';
import { isPictureTokens } from '../sizes/picture-tokens.js';
import type { GatewayConfig, InspectorConfig, ScrapeConfig, SenderConfig, UpstreamConfig } from './gateway-config.js';
import { budgetsSection } from './plan-budgets.js';
import { sharedStateSchema } from './read-shared-state.js';
import { type SecretSources, secret, section } from './secrets.js';

type Optional<K extends string, T> = { readonly [Name in K]?: T | undefined };

/** The sender of requests; `objective` names a priority. */
export type FileSender = Omit<SenderConfig, 'priority'> &
  Optional<'objective' | 'plan', string> &
  Optional<'priority', number>;

/** How a server is told ranks: the numbers of `map` stand beside names of objectives. */
export type FileRank = RankDialect | 'auto' | { readonly field: string; readonly map: GatewayConfig['objectives'] };
type FileUpstream = Omit<UpstreamConfig, 'priority'> & Optional<'priority', FileRank>;

/** What is read elsewhere, by `headgate/config`. */
type FlowSettings = 'flow' | 'hasDefaultDetector' | 'detectors' | 'constraints' | 'flowFingerprint' | 'warnings';
/** Sections whose settings depend on others. */
type Open = 'serviceTiers' | 'policyClasses' | 'upstreams' | 'admin' | 'inspector' | 'scrape' | 'auth';

/** A file as it was read: units are resolved, secrets are there, and defaults that need no other section. */
export interface GatewayFile extends Omit<GatewayConfig, FlowSettings | Open> {
  readonly admin: Omit<GatewayConfig['admin'], 'listen'> & Optional<'host', string> & Optional<'port', number>;
  readonly upstreams: readonly FileUpstream[];
  /** `service_tier` → name of an objective. */
  readonly serviceTiers: Readonly<Record<string, string>>;
  readonly policyClasses: readonly string[];
  readonly inspector?: (Omit<InspectorConfig, 'password'> & Optional<'password', string>) | undefined;
  readonly scrape: ScrapeConfig & Optional<'enabled', boolean>;
  readonly auth: Optional<'anonymous', FileSender> & { readonly keys: readonly (FileSender & { key: string })[] };
}

const { plugins, saturationDetector, flowControl } = flowSectionsJson;
const rankWord = s.oneOf('vllm', 'sglang', 'dynamo', 'none', 'auto');
const rankPattern = { type: 'string', pattern: '^\\w{1,24}$' };
const rankName = s.value('a name of up to 24 letters, not one that is read', isRankField, rankPattern);
const rankField = s.object({
  field: row('The field of the body.', rankName),
  map: row('Its number for each of `objectives`.', s.record(s.number())),
});
const rank = s.element<FileRank>(
  (given, report) => {
    if (typeof given === 'object') return s.readBy(rankField, given, report);
    return s.readBy(rankWord, given, (expected) => report(`${expected}, or { field, map }`));
  },
  (of) => ({ anyOf: [of(rankWord), of(rankField)] }),
);
const profiles = [...Object.keys(metricProfiles), 'none'] as readonly (MetricProfile | 'none')[];

const isPath = (candidate: unknown): candidate is string => typeof candidate === 'string' && candidate.startsWith('/');
const path = s.value('a path such as "/health"', isPath, { type: 'string', pattern: '^/' });

/** Without a path that ends in /v1, which the requests bring along, and without a query. */
const url: Schema<string> = s.element(
  (candidate, report) => {
    const parsed = typeof candidate === 'string' ? parseUrl(candidate) : undefined;
    if (parsed === undefined || !/^https?:$/.test(parsed.protocol) || parsed.search !== '' || parsed.username !== '') {
      report('a URL of http or https without query and credentials, such as "http://10.0.0.1:8000"');
      return undefined;
    }
    const base = parsed.pathname.replace(/\/+$/, '');
    if (/\/v1$/.test(base)) report('a URL without "/v1", which comes with each request');
    return parsed.origin + base;
  },
  { type: 'string', pattern: '^https?://' },
);

const parseUrl = (candidate: string): URL | undefined => (URL.canParse(candidate) ? new URL(candidate) : undefined);

const expectedOrigins = '"*", or a list of origins such as "https://chat.example.com"';

const isOrigin = (candidate: unknown): candidate is string =>
  typeof candidate === 'string' && parseUrl(candidate)?.origin === candidate;
const origin = s.value('an origin such as "https://chat.example.com"', isOrigin, { type: 'string' });

/** As browsers write them, so that they can be compared. */
const origins: Schema<'*' | readonly string[]> = s.element(
  (given, report) => (given === '*' ? given : s.readBy(s.list(origin, expectedOrigins), given, report)),
  (of) => ({ anyOf: [{ const: '*' }, of(s.list(origin))] }),
);

const nameOf = (what: string): Schema<string> => s.text(`the name of ${what}`);
const hostName = s.text('a name without a port');
const port = s.integer({ from: 0, to: 65_535 });
const count = s.integer({ from: 1 });
const onByDefault = s.otherwise(s.flag(), true);
const offByDefault = s.otherwise(s.flag(), false);
const span = (silent: Duration): Schema<number> => s.otherwise(s.positiveDuration(silent), silent);
const bytes = (silent: Quantity): Schema<number> => s.otherwise(size, silent);

/** As much as limits a size: from 1 byte up, and not unlimited. */
const size = s.fromOne('a size from 1 up, such as "4Mi"', Number.MAX_SAFE_INTEGER);

/** The priority of a name that was not given stays open until the objectives are known. */
const sender = {
  tenant: row('Its fairness ID.', nameOf('a tenant')),
  objective: option('A name of `objectives`.', nameOf('an objective')),
  priority: option('The priority, instead of an objective.', s.integer()),
  maxPriority: option('The highest that it may ask for.', s.integer()),
  plan: option('Its plan.', nameOf('a plan')),
  trusted: row('Its flow headers are believed.', offByDefault),
};

const openTelemetry = s.object({
  metrics: row('Record the metrics.', onByDefault),
  traces: row('Record a span for each request.', onByDefault),
  pool: option('Names the pool in metrics.', s.text()),
  fairnessIds: row('Metrics and spans name tenants.', offByDefault),
});

const scrape = s.object({
  enabled: option('Ask for load. Without it: if the section is there, or the detector needs it.', s.flag()),
  interval: row('From question to question.', span('50ms')),
  idleInterval: row('The same while no request waits or runs.', span('1s')),
  timeout: row('For the whole answer.', span('1s')),
  path: option('Where servers report.', path, '/metrics'),
  stalenessThreshold: row('After it a report is stale.', span('200ms')),
});

const health = s.object({
  interval: row('From check to check.', span('2s')),
  timeout: row('For the answer of a check.', span('1s')),
  failures: option('Failed checks in a row until it gets no work.', count, 3),
  successes: option('Good checks in a row until it gets work again.', count, 1),
  whenAllSilent: option('When none answers.', s.oneOf('keep', 'ill'), 'keep'),
});

const timeouts = s.object({
  connect: row('Until a server takes the connection.', span('5s')),
  upload: row('Silence while a body is sent.', span('10s')),
  firstToken: option('To the first content token; then another server is asked.', s.positiveDuration('5s')),
  firstTokenByModel: option('The same by model, as servers know it.', s.record(s.positiveDuration('60s')), {}),
  firstByte: row('To the head of the answer.', span('5m')),
  idle: row('Between pieces of an answer.', span('60s')),
  total: row('From seat to end.', span('30m')),
  socket: row('Silence of a socket without a turn.', span('15m')),
});

const limits = s.object({
  maxRequestBytes: row('The longest body.', bytes('8Mi')),
  maxReadingBytes: row('Bodies being received; a sender gets a quarter.', bytes('256Mi')),
  maxHeaderBytes: row('The headers of a request.', bytes('16Ki')),
  minUploadRate: row('Bytes a second; slower clients are cut.', bytes('4Ki')),
  maxConnections: option('Open connections; more are closed.', count, 16_384),
  maxSockets: option('Open sockets of a sender.', count, 1_024),
});

const retry = s.object({
  enabled: row('Send requests again that none answered.', onByDefault),
  max: option('How often it is sent again.', s.integer({ from: 0, to: 100 }), 1),
  maxBodyBytes: row('The longest body kept for it.', bytes('1Mi')),
  avoidFor: row('How long a server that failed gets nothing.', span('5s')),
});

const pictures = s.value('a formula like "pixels(750)", or tokens', isPictureTokens);
const models = s.object({
  aliases: option('Names of clients, with those of servers.', s.record(nameOf('a model')), {}),
  list: option('What `/v1/models` lists; without it, what servers list.', s.list(nameOf('a model'))),
  pictures: option('How pictures count, by model; `*`: others.', s.record(pictures), {}),
});

const waiting = s.object({
  enabled: row('Streams that wait begin to answer.', onByDefault),
  after: row('Silence until then.', span('15s')),
  every: row('From sign to sign.', span('10s')),
  position: row('Signs tell place and time.', offByDefault),
  informational: row('Others get `102 Processing`.', offByDefault),
  json: option('`whitespace`: others begin with spaces, and 200.', s.oneOf('whitespace')),
});

const cors = s.object({
  origins: row('Those that may call.', origins),
  maxAge: option('How long browsers remember it.', s.duration('10m'), '10m'),
});

const drain = s.object({
  delay: option('How long requests still come while `/readyz` says 503.', s.duration('3s'), '3s'),
  waiting: row('How long what waits is dispatched.', span('5s')),
  streams: row('How long answers may take.', span('20s')),
});

const log = s.object({
  format: option('Lines of JSON, or of text.', s.oneOf('json', 'text'), 'text'),
  requests: row('Each request has a line of its own.', onByDefault),
  tenants: row('Lines name tenants.', onByDefault),
});

/** What operators reach, and what they need for it. */
function operatorTables(aSecret: Schema<string>) {
  const admin = s.object({
    host: option('Its address; that of `listen` without it.', s.text()),
    port: option('Its port; that of `listen` without it.', port),
    token: option('Their bearer token.', aSecret),
    hosts: option('Names besides addresses and `localhost`.', s.list(hostName), []),
  });
  const inspector = s.object({
    path: option('Where the page is.', path, '/inspector'),
    password: option('Its password; `admin.token` without it.', aSecret),
    fairnessIds: option('Whether the page names tenants.', s.oneOf('shown', 'hidden'), 'shown'),
  });
  const demand = s.object({
    path: option('Where autoscalers ask.', path, '/demand'),
    token: option('A token for this alone.', aSecret),
  });
  return { admin, inspector, demand };
}

/** The schema of a file, whose secrets come from `sources`; `written`: it, as far as secrets are read again. */
export function fileSchema(
  sources: SecretSources,
  written: Readonly<Record<string, unknown>> = {},
): Schema<GatewayFile> {
  const aSecret = secret(sources);
  const { admin, inspector, demand } = operatorTables(aSecret);
  const upstream = s.object({
    id: row('Its name, in logs and metrics.', nameOf('a model server')),
    url: row('The base URL, without `/v1`.', url),
    labels: option('Labels for filters; `model` may list several.', s.record(s.text()), {}),
    weight: option('Its capacity: 3 has three times the seats.', s.aboveZero(), 1),
    metrics: option('Its metrics; `none`: not asked. Found out without it.', s.oneOf(...profiles)),
    priority: option('How it is told ranks; `auto`: by its `metrics`.', rank),
    healthPath: option('Answers 2xx while it is well; else not checked.', path),
    apiKey: option('Sent to it as `Authorization: Bearer …`.', aSecret),
  });
  const key = s.object({ key: row('What the client sends.', aSecret), ...sender });
  const auth = s.object({
    keys: option('The keys that are known.', section(s.list(section(key)), 'an array'), []),
    anonymous: option('Whoever has no known key.', s.object(sender)),
  });
  const sharedState = sharedStateSchema(sources, written.sharedState);
  const listen = s.object({
    host: option('Its address.', s.text(), '127.0.0.1'),
    port: row('Its port; 0 is any free one.', port),
  });
  return s.object({
    listen: row('Where clients reach the gateway.', listen),
    admin: row('Where operators reach it, and what they need.', s.orEmpty(section(admin))),
    inspector: option('The page that shows the queue; off without it.', section(inspector)),
    demand: row('For autoscalers.', s.orEmpty(section(demand))),
    openTelemetry: option('OpenTelemetry; off without it.', openTelemetry),
    upstreams: row('The model servers.', s.list(upstream)),
    scrape: row('How servers are asked for their load.', s.orEmpty(scrape)),
    health: row('Checks of servers that have a `healthPath`.', s.orEmpty(health)),
    timeouts: row('How long each part of a request may take.', s.orEmpty(timeouts)),
    limits: row('What clients may send.', s.orEmpty(limits)),
    waiting: row('Signs of life for clients that wait.', s.orEmpty(waiting)),
    forwarded: option('`X-Forwarded-…`: set, or passed on as they came.', s.oneOf('set', 'pass'), 'set'),
    retry: row('Requests that none answered go to another.', s.orEmpty(retry)),
    auth: row('Who may send; without keys everybody is `default-flow`.', s.orEmpty(section(auth))),
    objectives: option('Names of priorities.', s.record(s.integer()), {}),
    serviceTiers: option('Objectives by `service_tier`.', s.record(nameOf('an objective')), {}),
    policyClasses: option('Policy classes of Dynamo.', s.list(s.text()), []),
    models: row('Names of models.', s.orEmpty(models)),
    cors: option('Scripts of other origins.', cors),
    drain: row('What SIGTERM waits for.', s.orEmpty(drain)),
    log: row('What is logged.', s.orEmpty(log)),
    contract: option('How drops are answered.', s.oneOf('gateway-api', 'llm-d', 'dynamo'), 'gateway-api'),
    bandHeadroom: row('Answers tell it.', offByDefault),
    families: row('Agents of one family are one flow, `tenant/@session`.', offByDefault),
    sharedState: option('Limits of all replicas; without it each has its own.', sharedState),
    budgets: option('What tenants may spend.', budgetsSection),
    plugins: row('As in an EndpointPickerConfig, and modules of your own.', s.anything(plugins)),
    saturationDetector: row('The older place for `flowControl.saturationDetector`.', s.anything(saturationDetector)),
    flowControl: row('As in an EndpointPickerConfig.', s.anything(flowControl)),
  });
}
