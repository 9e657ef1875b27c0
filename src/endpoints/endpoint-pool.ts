/** Model servers and their reported load, as hosts tell. Invariant: one that is added again starts from zero. */
import { configError, describeValue } from '../base/faults/flow-config-error.js';
import { GuardedEvents, type ListenerErrors } from '../base/faults/guarded-events.js';
import * as s from '../base/schema/schema.js';
import { AvailablePool } from './available-pool.js';
import type { EndpointState, EndpointView } from './endpoint.js';
import { type MetricsReport, mergeReport, reportSchema } from './metrics-report.js';
import { Endpoint, SeatPool } from './seat-pool.js';

/** The options of `add`. */
export interface EndpointOptions {
  /** Free-form, for pickers, filters and scrapers. @default {} */
  labels?: Record<string, string> | undefined;
  /** Its capacity compared with endpoints of weight 1; above 0. @default 1 */
  weight?: number | undefined;
  /** `draining`, `ill`: no requests, no capacity; what runs goes on. With none ready it is empty. @default 'ready' */
  state?: EndpointState | undefined;
}

const endpointOptions: s.Schema<EndpointOptions> = s.object({
  labels: s.optional(
    s.element((candidate, report) => {
      if (typeof candidate !== 'object' || candidate === null) report('an object of texts');
      else for (const [name, text] of Object.entries(candidate)) if (typeof text !== 'string') report('text', [name]);
      return candidate as Record<string, string>;
    }),
  ),
  weight: s.optional(s.aboveZero()),
  state: s.optional(s.oneOf('ready', 'draining', 'ill')),
});

/** The events of a pool. They are emitted after the controllers that use the pool have acted on the change. */
export interface PoolEvents extends ListenerErrors {
  added: EndpointView;
  /** It is not a member any more; requests in flight on it keep their leases. */
  removed: EndpointView;
  /** Its labels, its weight or its state changed. */
  updated: EndpointView;
  /** Its metrics changed. */
  reported: EndpointView;
  /** It was marked, its mark was extended, or the mark was taken off: see `overloadedUntilMs`. */
  overloaded: EndpointView;
}

/**
 * The pool of model servers behind one or several controllers. Changes wake the controllers that use it.
 * Name a server by its `id`, or by the view that `add` returned. The view means that very server, and not one that was
 * added later under the same name. Methods that change one server return false when it is not in the pool.
 */
export class EndpointPool extends SeatPool {
  private readonly events = new GuardedEvents<PoolEvents>('added', 'removed', 'updated', 'reported', 'overloaded');

  /** Calls `listener` after each change; its failure is a `listenerError`. Returns a function that stops it. */
  on<E extends keyof PoolEvents>(event: E, listener: (payload: PoolEvents[E]) => unknown): () => void {
    return this.events.on(event, listener);
  }

  /** Adds a server. @throws FlowConfigError for an `id` that is empty or a member's, and wrong options */
  add(id: string, options: EndpointOptions = {}): EndpointView {
    if (typeof id !== 'string' || id === '' || this.members.has(id))
      throw configError('EndpointPool.add', 'id', 'a name that is not in the pool yet', describeValue(id));
    const { labels, weight = 1, state = 'ready' } = s.parse(endpointOptions, options, `EndpointPool.add(${id})`);
    const endpoint = new Endpoint(id, Object.freeze({ ...labels }), weight, false);
    endpoint.state = state;
    this.join(endpoint);
    this.changedFor(endpoint, 'added');
    return endpoint;
  }

  /** Takes a model server out; requests in flight on it keep their leases. */
  remove(server: string | EndpointView): boolean {
    return this.change(server, (endpoint) => {
      this.part(endpoint);
      this.changedFor(endpoint, 'removed');
    });
  }

  /** Changes options of `add`; `labels` replaces all labels. @throws FlowConfigError for wrong options */
  update(server: string | EndpointView, change: EndpointOptions): boolean {
    const parsed = s.parse(endpointOptions, change, `EndpointPool.update(${idOf(server)})`);
    return this.change(server, (endpoint) => {
      const { labels = endpoint.labels, weight = endpoint.weight, state = endpoint.state } = parsed;
      if (weight === endpoint.weight && state === endpoint.state && hasSameEntries(labels, endpoint.labels)) return;
      endpoint.labels = Object.freeze({ ...labels });
      endpoint.weight = weight;
      endpoint.state = state;
      this.changedFor(endpoint, 'updated');
    });
  }

  /**
   * Takes the load that a model server reported. An older report is ignored; one from the future counts as taken now.
   * Figures that a rank leaves out stay; null ones are unknown. All stay without `ranks`, and `loraAdapters` likewise.
   * @throws FlowConfigError for a wrong figure
   */
  report(server: string | EndpointView, report: MetricsReport): boolean {
    s.parse(reportSchema, report, `EndpointPool.report(${idOf(server)})`);
    return this.change(server, (endpoint) => {
      const metrics = mergeReport(report, endpoint.metrics, this.now());
      if (metrics === undefined) return;
      endpoint.report(metrics, report.travelMs ?? 0);
      this.changed();
      this.events.emit('reported', endpoint);
    });
  }

  /**
   * Marks a model server that rejected work: it gets none for `forMs`, never shortened. Without a timer. Source:
   * Dynamo's client, on `Server overloaded:`. @throws FlowConfigError when `forMs` is not above 0 and finite
   */
  markOverloaded(server: string | EndpointView, forMs: number): boolean {
    if (!(Number.isFinite(forMs) && forMs > 0))
      throw configError(`EndpointPool.markOverloaded(${idOf(server)})`, 'forMs', 'ms above 0', describeValue(forMs));
    return this.change(server, (endpoint) => {
      const untilMs = this.now() + forMs;
      if (untilMs > endpoint.overloadedUntilMs) this.mark(endpoint, untilMs);
    });
  }

  /** Removes the overload mark before its time is over. */
  clearOverloaded(server: string | EndpointView): boolean {
    return this.change(server, (endpoint) => {
      if (endpoint.overloadedUntilMs > 0) this.mark(endpoint, 0);
    });
  }

  /** @internal Its available part, for one controller. */
  available(): AvailablePool {
    return new AvailablePool(this);
  }

  /** False for a server that is not in the pool. */
  private change(server: string | EndpointView, change: (endpoint: Endpoint) => void): boolean {
    const endpoint = typeof server === 'string' ? this.get(server) : this.member(server);
    if (endpoint === undefined) return false;
    change(endpoint);
    return true;
  }

  private mark(endpoint: Endpoint, untilMs: number): void {
    endpoint.overloadedUntilMs = untilMs;
    this.changedFor(endpoint, 'overloaded');
  }

  private changedFor(endpoint: Endpoint, event: 'added' | 'removed' | 'updated' | 'overloaded'): void {
    this.changedMember();
    this.events.emit(event, endpoint);
  }
}

function idOf(server: string | EndpointView): string {
  return typeof server === 'string' ? server : server.id;
}

function hasSameEntries(a: Readonly<Record<string, string>>, b: Readonly<Record<string, string>>): boolean {
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((name) => a[name] === b[name]);
}
