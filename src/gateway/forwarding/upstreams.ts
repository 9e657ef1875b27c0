/** The file's servers in the pool. Invariant: exactly those of the last configuration; a new URL is another server. */
import { put } from '../../base/put.js';
import { EndpointPool, type EndpointView } from '../../index.js';
import type { RequestState } from '../request-state.js';
import type { UpstreamConfig } from '../settings/gateway-config.js';
import { mayHave, modelsOf } from '../shared/model-label.js';

export class Upstreams {
  readonly pool: EndpointPool = new EndpointPool();
  /** It keeps servers that left while requests were under way to them. */
  private readonly configs = new WeakMap<EndpointView, UpstreamConfig>();
  /** The models that the servers have; undefined while one of them may have any, or there are none. */
  private models: ReadonlySet<string> | undefined = undefined;
  /** Listeners of the pool look up the configuration of a new member before `add` returns. */
  private joining: UpstreamConfig | undefined = undefined;

  /** `onForeign` hears of a member that somebody else added. The pool has removed it by then: its URL is not known. */
  constructor(onForeign: (id: string) => void = () => {}) {
    this.pool.on('added', (endpoint) => {
      if (this.joining !== undefined) return;
      this.pool.remove(endpoint);
      onForeign(endpoint.id);
    });
  }

  apply(upstreams: readonly UpstreamConfig[]): void {
    const wanted = new Map(upstreams.map((upstream) => [upstream.id, upstream]));
    for (const endpoint of [...this.pool.endpoints]) {
      if (wanted.get(endpoint.id)?.url !== this.configOf(endpoint).url) this.pool.remove(endpoint);
    }
    for (const upstream of upstreams) this.put(upstream);
    const isAny = upstreams.length === 0 || upstreams.some(({ labels }) => labels.model === undefined);
    this.models = isAny ? undefined : new Set(upstreams.flatMap(modelsOf));
  }

  configOf(endpoint: EndpointView): UpstreamConfig {
    const config = this.configs.get(endpoint) ?? this.joining;
    if (config === undefined) throw new Error(`${endpoint.id} was not added by this gateway`);
    return config;
  }

  /** False when every server says which models it has, and none has this one. */
  serves(model: string): boolean {
    return this.models === undefined || this.models.has(model);
  }

  /** Whether a server is left that a request was not sent to yet, and that serves its model. */
  hasOther({ attempts, targetModel }: Pick<RequestState, 'attempts' | 'targetModel'>): boolean {
    return this.ready(targetModel).some(({ id }) => !attempts.includes(id));
  }

  /** Those that may serve a model now. */
  ready(model: string | undefined): EndpointView[] {
    return this.pool.endpoints.filter((each) => each.state === 'ready' && mayHave(each, model));
  }

  private put(upstream: UpstreamConfig): void {
    const { id, url, weight } = upstream;
    const labels = { address: new URL(url).host, ...upstream.labels };
    const known = this.pool.get(id);
    if (known !== undefined) {
      this.configs.set(known, upstream);
      this.pool.update(known, { labels, weight });
      return;
    }
    this.joining = upstream;
    this.configs.set(this.pool.add(id, { labels, weight }), upstream);
    this.joining = undefined;
  }
}

/** Refusals within the time for which a server would be avoided. */
const enough = 3;

/** Marks a server for `avoidForMs` when the evidence is enough, or `isCertain`, and another server is left. */
export type RefusalTracker = (endpoint: EndpointView, avoidForMs: number, isCertain: boolean) => void;

/** When a refusing server rests. Not after one refusal: a request that all refuse would take them from everybody. */
export function refusalTracker(pool: EndpointPool): RefusalTracker {
  const refusals = new WeakMap<EndpointView, { count: number; readonly sinceMs: number }>();

  function isEnough(endpoint: EndpointView, windowMs: number, nowMs: number): boolean {
    const last = refusals.get(endpoint);
    const isOld = last === undefined || nowMs - last.sinceMs > windowMs;
    const known = isOld ? put(refusals, endpoint, { count: 0, sinceMs: nowMs }) : last;
    known.count += 1;
    return known.count >= enough && refusals.delete(endpoint);
  }

  return (endpoint, avoidForMs, isCertain) => {
    const nowMs = pool.now();
    if (!isCertain && !isEnough(endpoint, avoidForMs, nowMs)) return;
    const isLast = pool.endpoints.every(
      (other) => other === endpoint || other.state !== 'ready' || other.overloadedUntilMs > nowMs,
    );
    if (!isLast) pool.markOverloaded(endpoint, avoidForMs);
  };
}
