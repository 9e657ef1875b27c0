/**
 * The model servers, their last reported load, and the seats taken on each.
 *
 * Invariant: the pool's sums are the sums over its members. A removed endpoint keeps the seats that were booked on it, and an endpoint
 * added again under the same name starts from zero.
 */
import { type ConfigIssue, describeValue, FlowConfigError } from '../options/flow-config-error.js';
import type { EndpointMetrics, EndpointView, PoolView, RankLoad } from './endpoint.js';

/** What `add` takes beside the name. */
export interface EndpointOptions {
  /** Free-form, for pickers and filters. @default {} */
  labels?: Record<string, string> | undefined;
}

/** A report without a sample time was sampled now. */
export type MetricsReport = Omit<EndpointMetrics, 'sampledAtMs'> & { sampledAtMs?: number | undefined };

/** A seat as the pool books it. */
export interface Seat {
  readonly tokens: number;
  /** When it was taken at this endpoint. */
  readonly seatedAtMs: number;
}

export class Endpoint implements EndpointView {
  metrics: EndpointMetrics | undefined = undefined;
  inFlightRequests = 0;
  inFlightTokens = 0;
  dispatchedRequests = 0;
  isMember = true;
  /** Seats newer than the metrics, oldest first; kept only for endpoints that report. */
  private readonly unsampled = new Set<Seat>();
  readonly id: string;
  readonly labels: Readonly<Record<string, string>>;
  /** True for the one endpoint of a controller without a pool. */
  readonly isImplicit: boolean;

  constructor(id: string, labels: Readonly<Record<string, string>>, isImplicit: boolean) {
    this.id = id;
    this.labels = labels;
    this.isImplicit = isImplicit;
  }

  get unsampledRequests(): number {
    return this.unsampled.size;
  }

  book(seat: Seat): void {
    this.inFlightRequests++;
    this.inFlightTokens += seat.tokens;
    this.dispatchedRequests++;
    if (this.metrics !== undefined) this.unsampled.add(seat);
  }

  unbook(seat: Seat): void {
    this.inFlightRequests--;
    this.inFlightTokens -= seat.tokens;
    if (this.unsampled.size > 0) this.unsampled.delete(seat);
  }

  report(metrics: EndpointMetrics): void {
    this.metrics = metrics;
    for (const seat of this.unsampled) {
      if (seat.seatedAtMs > metrics.sampledAtMs) break;
      this.unsampled.delete(seat);
    }
  }
}

const rankFigures = ['activeDecodeBlocks', 'kvUsedBlocks', 'activePrefillTokens', 'totalBlocks', 'maxNumBatchedTokens'] as const;

function wrongFigures(figures: Readonly<Record<string, unknown>>): ConfigIssue[] {
  const wrong = Object.entries(figures).filter(([, figure]) => !(Number.isFinite(figure) && Number(figure) >= 0));
  return wrong.map(([path, figure]) => ({ path, expected: 'a number from 0 up', got: describeValue(figure) }));
}

function wrongRanks(ranks: readonly RankLoad[] | undefined): ConfigIssue[] {
  if (ranks === undefined) return [];
  if (!Array.isArray(ranks)) return [{ path: 'ranks', expected: 'an array with one entry for each rank', got: describeValue(ranks) }];
  return ranks.flatMap((rank: unknown, index) => {
    const path = `ranks[${index}]`;
    if (typeof rank !== 'object' || rank === null) return [{ path, expected: 'an object of figures', got: describeValue(rank) }];
    const given = rankFigures.flatMap((name) => (Reflect.get(rank, name) === undefined ? [] : [[name, Reflect.get(rank, name)] as const]));
    return wrongFigures(Object.fromEntries(given)).map((issue) => ({ ...issue, path: `${path}.${issue.path}` }));
  });
}

/** The ranks as now known: what a report leaves out stays as it was. */
function mergeRanks(reported: readonly RankLoad[], known: readonly RankLoad[] = []): readonly RankLoad[] {
  return reported.map((rank, index) => {
    const before = known[index];
    return Object.fromEntries(rankFigures.map((name) => [name, rank[name] ?? before?.[name]]));
  });
}

/** The pool of model servers behind one or several controllers. Changes wake the controllers that use it. */
export class EndpointPool implements PoolView {
  inFlightRequests = 0;
  inFlightTokens = 0;
  private readonly members = new Map<string, Endpoint>();
  private inOrder: readonly Endpoint[] = [];
  private listeners: readonly (() => void)[] = [];
  private nowMs: () => number = () => performance.now();

  get endpoints(): readonly Endpoint[] {
    return this.inOrder;
  }

  /** The member of that name. */
  get(id: string): Endpoint | undefined {
    return this.members.get(id);
  }

  /**
   * Adds a model server.
   * @throws FlowConfigError when `id` is empty or a member already.
   */
  add(id: string, options: EndpointOptions = {}): EndpointView {
    if (typeof id !== 'string' || id === '' || this.members.has(id)) {
      throw new FlowConfigError('EndpointPool.add', [
        { path: 'id', expected: 'a name that is not in the pool yet', got: describeValue(id) },
      ]);
    }
    return this.join(new Endpoint(id, { ...options.labels }, false));
  }

  /**
   * Takes a model server out; requests in flight on it keep their leases. Returns false when there was none of that name. Given what
   * `add` returned, it takes out that very server, and not one that was added under the same name since.
   */
  remove(server: string | EndpointView): boolean {
    const id = typeof server === 'string' ? server : server.id;
    const endpoint = this.members.get(id);
    if (endpoint === undefined || (typeof server !== 'string' && endpoint !== server)) return false;
    endpoint.isMember = false;
    this.members.delete(id);
    this.inOrder = Object.freeze([...this.members.values()]);
    this.inFlightRequests -= endpoint.inFlightRequests;
    this.inFlightTokens -= endpoint.inFlightTokens;
    this.changed();
    return true;
  }

  /**
   * Takes the load that a model server reported. A report older than the last one is ignored. Returns false when there is no server
   * of that name. `ranks` says how many ranks there are; a figure that a rank leaves out stays as last reported, and so do all of them
   * when `ranks` is left out.
   * @throws FlowConfigError when a figure is negative or no number.
   */
  report(id: string, report: MetricsReport): boolean {
    const { waitingQueueSize, runningRequests, kvCacheUsage, sampledAtMs = this.nowMs(), ranks } = report;
    const figures = { waitingQueueSize, runningRequests, kvCacheUsage, sampledAtMs };
    const issues = [...wrongFigures(figures), ...wrongRanks(ranks)];
    if (issues.length > 0) throw new FlowConfigError(`EndpointPool.report(${id})`, issues);
    const endpoint = this.members.get(id);
    if (endpoint === undefined) return false;
    const { metrics } = endpoint;
    if (metrics === undefined || sampledAtMs >= metrics.sampledAtMs) {
      const known = ranks === undefined ? metrics?.ranks : mergeRanks(ranks, metrics?.ranks);
      endpoint.report(known === undefined ? figures : { ...figures, ranks: known });
      this.changed();
    }
    return true;
  }

  /** @internal Lets a controller hear of changes, on the controller's clock. */
  attach(listener: () => void, nowMs: () => number): () => void {
    this.nowMs = nowMs;
    this.listeners = [...this.listeners, listener];
    return () => {
      this.listeners = this.listeners.filter((other) => other !== listener);
    };
  }

  /** @internal The one endpoint of a controller that has no pool. */
  static implicit(): EndpointPool {
    const pool = new EndpointPool();
    pool.join(new Endpoint('default', {}, true));
    return pool;
  }

  /** @internal Takes a seat. */
  book(endpoint: Endpoint, seat: Seat): void {
    endpoint.book(seat);
    if (!endpoint.isMember) return;
    this.inFlightRequests++;
    this.inFlightTokens += seat.tokens;
  }

  /** @internal Gives a seat back, and wakes whoever waits for one. */
  unbook(endpoint: Endpoint, seat: Seat): void {
    endpoint.unbook(seat);
    if (!endpoint.isMember) return;
    this.inFlightRequests--;
    this.inFlightTokens -= seat.tokens;
    this.changed();
  }

  private join(endpoint: Endpoint): Endpoint {
    this.members.set(endpoint.id, endpoint);
    this.inOrder = Object.freeze([...this.members.values()]);
    this.changed();
    return endpoint;
  }

  private changed(): void {
    for (const listener of this.listeners) listener();
  }
}
