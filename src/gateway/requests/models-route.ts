/**
 * `GET /v1/models`: models of the file, of servers' labels, and of lists of servers without one. Invariant: a server is
 * asked at most once at a time and in `keptMs`, and the answer made once, however many clients ask.
 */
import type { Agent } from 'undici';
import { GatheredBytes } from '../../base/stream/gathered-bytes.js';
import { longestModel } from '../bodies/generation-body.js';
import { locationOf } from '../forwarding/upstream-request.js';
import type { ModelsConfig, UpstreamConfig } from '../settings/gateway-config.js';
import { ApiError } from '../shared/api-error.js';
import { modelsOf } from '../shared/model-label.js';

export interface Model {
  readonly id: string;
  readonly object: 'model';
  readonly created: number;
  readonly owned_by: string;
}

export type ModelOffer = { readonly models: ReadonlyMap<string, Model>; readonly json: Buffer };

const timeoutMs = 2_000;
/** How long the answer of the servers is kept and repeated; a failure too. */
const keptMs = 5_000;

type Lists = readonly (readonly Model[])[];
type Servers = readonly UpstreamConfig[];
type Serves = (model: string) => boolean;

interface Kept {
  /** The servers that were asked. */
  readonly of: string;
  readonly lists: Promise<Lists>;
  /** Infinity while they are being asked. */
  untilMs: number;
}

/** Bytes of one server's list. A server that goes on is no reason to run out of memory. */
const longestList = 4_194_304;
/** Commas in it, because to parse millions of values would stop the event loop. */
const mostCommas = 100_000;
/** The models that are offered; what servers list beyond is left out. */
const mostModels = 10_000;

export class ModelsRoute {
  private kept: Kept | undefined = undefined;
  private offered: { readonly of: readonly unknown[]; readonly offer: ModelOffer } | undefined = undefined;

  /**
   * Aliases are models as well. `serves`: some server takes requests for a model; it may change with `upstreams` only.
   * @throws (rejects) ApiError 502 when no file, no label and no server tells of any
   */
  async offer(config: ModelsConfig, upstreams: Servers, serves: Serves, agent: Agent): Promise<ModelOffer> {
    const lists = await this.askAll(config.list === undefined ? upstreams : [], agent);
    const of = [config, lists, ...upstreams];
    const isSame = this.offered?.of.length === of.length && of.every((part, index) => part === this.offered?.of[index]);
    if (this.offered !== undefined && isSame) return this.offered.offer;
    const models = offeredModels(config, upstreams, lists, serves);
    const json = Buffer.from(JSON.stringify({ object: 'list', data: [...models.values()] }));
    this.offered = { of, offer: { models, json } };
    return this.offered.offer;
  }

  private askAll(upstreams: Servers, agent: Agent): Promise<Lists> {
    const of = JSON.stringify(upstreams.map(({ id, url }) => [id, url]));
    if (this.kept?.of === of && performance.now() < this.kept.untilMs) return this.kept.lists;
    const answers = Promise.all(upstreams.map((upstream) => ask(upstream, agent)));
    const lists = answers.then((all) => all.filter((answer) => answer !== undefined));
    const kept: Kept = { of, lists, untilMs: Infinity };
    this.kept = kept;
    void lists.then(() => (kept.untilMs = performance.now() + keptMs));
    return lists;
  }
}

function offeredModels({ aliases, list }: ModelsConfig, upstreams: Servers, lists: Lists, serves: Serves) {
  const models = new Map<string, Model>();
  if (list !== undefined) {
    for (const id of list) if (serves(Object.hasOwn(aliases, id) ? (aliases[id] ?? id) : id)) models.set(id, model(id));
    return models;
  }
  const labelled = upstreams.flatMap(modelsOf);
  if (lists.length === 0 && labelled.length === 0 && upstreams.length > 0)
    throw new ApiError(502, 'upstream_unreachable', 'No model server answers.');
  for (const id of labelled) models.set(id, model(id));
  for (const entry of lists.flat()) {
    if ((models.size < mostModels || models.has(entry.id)) && serves(entry.id)) models.set(entry.id, entry);
  }
  for (const [id, target] of Object.entries(aliases)) {
    const known = models.get(target);
    if (known !== undefined && !models.has(id)) models.set(id, { ...known, id });
  }
  return models;
}

/** Undefined for a server that does not answer with a list. Never rejects. */
async function ask(upstream: UpstreamConfig, agent: Agent): Promise<Model[] | undefined> {
  try {
    const { apiKey } = upstream;
    const { origin, pathname } = locationOf(upstream);
    const headers = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
    const signal = AbortSignal.timeout(timeoutMs);
    const answer = await agent.request({ origin, path: `${pathname}/v1/models`, method: 'GET', headers, signal });
    const body = new GatheredBytes();
    let commas = 0;
    // Leaving the loop destroys the body.
    for await (const chunk of answer.body as AsyncIterable<Buffer>) {
      body.push(chunk);
      for (let at = chunk.indexOf(comma); at >= 0; at = chunk.indexOf(comma, at + 1)) commas += 1;
      if (body.length > longestList || commas > mostCommas) return undefined;
    }
    const text = Buffer.concat(body.parts()).toString('utf8');
    const data: unknown = Reflect.get(Object(JSON.parse(text)), 'data');
    return answer.statusCode === 200 && Array.isArray(data) ? data.slice(0, mostModels).flatMap(readModel) : undefined;
  } catch {
    return undefined;
  }
}

const comma = 0x2c;

/** Nobody can ask for a model of a longer name. */
function readModel(entry: unknown): Model[] {
  const { id, created, owned_by }: Record<string, unknown> = { ...Object(entry) };
  return typeof id === 'string' && id.length < longestModel ? [model(id, created, owned_by)] : [];
}

function model(id: string, at?: unknown, by?: unknown): Model {
  const owned_by = typeof by === 'string' && by.length < longestModel ? by : 'headgate';
  return { id, object: 'model', created: typeof at === 'number' ? at : 0, owned_by };
}
