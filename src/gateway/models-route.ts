/**
 * `GET /v1/models`: the models that requests are routed for: those of the file, those that servers are labelled with,
 * and what servers without a label list themselves.
 *
 * Invariant: however many clients ask, a server is asked at most once at a time, and once in `keptMs`.
 */
import type { Agent } from 'undici';
import { ApiError } from './api-error.js';
import type { ModelsConfig, UpstreamConfig } from './gateway-config.js';
import { listed } from './upstreams.js';

export interface Model {
  readonly id: string;
  readonly object: 'model';
  readonly created: number;
  readonly owned_by: string;
}

const timeoutMs = 2_000;
/** How long the answer of the servers is kept and repeated; a failure too. */
const keptMs = 5_000;

interface Kept {
  /** The servers that were asked. */
  readonly of: string;
  readonly lists: Promise<Model[][]>;
  /** Infinity while they are being asked. */
  untilMs: number;
}

/**
 * Characters of one server's list: some ten thousand models. A server that goes on is no reason to run out of memory.
 */
const longestList = 4_194_304;

export class ModelsRoute {
  private kept: Kept | undefined = undefined;

  /**
   * Aliases are models as well. `serves` tells whether some server can take requests for a model.
   * @throws (rejects) ApiError 502 when no file, no label and no server tells of any
   */
  async list(
    { aliases, list }: ModelsConfig,
    upstreams: readonly UpstreamConfig[],
    serves: (model: string) => boolean,
    agent: Agent,
  ): Promise<Model[]> {
    const targetOf = (id: string): string => (Object.hasOwn(aliases, id) ? (aliases[id] ?? id) : id);
    if (list !== undefined) return list.filter((id) => serves(targetOf(id))).map((id) => model({ id }));
    const lists = await this.askAll(upstreams, agent);
    const labelled = upstreams.flatMap(({ labels }) => (labels.model === undefined ? [] : listed(labels.model)));
    if (lists.length === 0 && labelled.length === 0 && upstreams.length > 0) {
      throw new ApiError(502, 'upstream_unreachable', 'No model server answers.');
    }
    const models = new Map(
      lists.flatMap((all) => all.filter(({ id }) => serves(id))).map((entry) => [entry.id, entry]),
    );
    for (const id of labelled) if (!models.has(id)) models.set(id, model({ id }));
    for (const [id, target] of Object.entries(aliases)) {
      const known = models.get(target);
      if (known !== undefined && !models.has(id)) models.set(id, { ...known, id });
    }
    return [...models.values()];
  }

  private askAll(upstreams: readonly UpstreamConfig[], agent: Agent): Promise<Model[][]> {
    const of = JSON.stringify(upstreams.map(({ id, url }) => [id, url]));
    if (this.kept?.of === of && performance.now() < this.kept.untilMs) return this.kept.lists;
    const answers = Promise.all(upstreams.map((upstream) => ask(upstream, agent)));
    const lists = answers.then((all) => all.filter((answer) => answer !== undefined));
    const kept: Kept = { of, lists, untilMs: Number.POSITIVE_INFINITY };
    this.kept = kept;
    void lists.then(() => {
      kept.untilMs = performance.now() + keptMs;
    });
    return lists;
  }
}

/** Undefined for a server that does not answer with a list. Never rejects. */
async function ask({ url, apiKey }: UpstreamConfig, agent: Agent): Promise<Model[] | undefined> {
  try {
    const { origin, pathname } = new URL(url);
    const path = `${pathname === '/' ? '' : pathname}/v1/models`;
    const headers = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
    const answer = await agent.request({
      origin,
      path,
      method: 'GET',
      headers,
      signal: AbortSignal.timeout(timeoutMs),
    });
    let text = '';
    // Leaving the loop destroys the body.
    for await (const chunk of answer.body.setEncoding('utf8') as AsyncIterable<string>) {
      text += chunk;
      if (text.length > longestList) return undefined;
    }
    const data: unknown = Reflect.get(Object(JSON.parse(text)), 'data');
    return answer.statusCode === 200 && Array.isArray(data) ? data.flatMap(readModel) : undefined;
  } catch {
    return undefined;
  }
}

function readModel(entry: unknown): Model[] {
  const { id, created, owned_by }: Record<string, unknown> = { ...Object(entry) };
  return typeof id === 'string' ? [model({ id, created, owned_by })] : [];
}

function model({ id, created, owned_by }: { id: string; created?: unknown; owned_by?: unknown }): Model {
  return {
    id,
    object: 'model',
    created: typeof created === 'number' ? created : 0,
    owned_by: typeof owned_by === 'string' ? owned_by : 'headgate',
  };
}
