/** The controller's public face, which hosts hold. Every decision is made in the engine. */
import { describeValue, FlowConfigError } from '../base/faults/flow-config-error.js';
import * as s from '../base/schema/schema.js';
import { noDetector } from '../gate/read-detector.js';
import { checkRun, isSpan } from './check-arguments.js';
import { Engine, type Standing } from './engine/engine.js';
import { EventHub } from './event-hub.js';
import type { FlowEvents } from './events.js';
import type { FlowKey, FlowRequest } from './flow-request.js';
import { type ControllerFigures, takeFigures } from './inspect/figures.js';
import { type FlowStats, takeStats } from './inspect/stats.js';
import type { FlowControllerOptions, ResolvedOptions } from './options.js';
import { FlowControlError } from './outcome/flow-control-error.js';
import type { Lease } from './outcome/lease.js';
import type { Outcome } from './outcome/outcome.js';
import { resolveOptions } from './resolve-options.js';
import type { ShadowMaker } from './shadow/shadow-mode.js';
import { warnOfLimits, warnOfShortTtls } from './warn-of-options.js';

/** The least that an adapter needs of a controller. */
export interface FlowGate<R extends FlowRequest = FlowRequest> {
  enqueue(request: R, key: FlowKey): Promise<Outcome>;
}

export interface CloseOptions {
  /** How long waiting requests may still be dispatched, ms. @default 0 */
  drainMs?: number | undefined;
}

const closeOptions = s.object({ drainMs: s.optional(s.value('milliseconds from 0 up', isSpan), 0) });

export interface RunOptions {
  /** The end of a request that is evicted while it runs. @default 'drop' */
  onEvicted?: 'drop' | 'requeue' | undefined;
}

/**
 * Holds requests while the pool of model servers is full, and lets them go by priority, fairness and order.
 * @example
 * const flow = new FlowController({ maxConcurrency: 15 });
 * const outcome = await flow.enqueue({ byteSize: 512 }, { fairnessId: 'tenant-a', priority: 100 });
 * if (outcome.type === 'Dispatched') {
 *   try { await forward(outcome.lease.signal); } finally { outcome.lease.release(); }
 * }
 */
export class FlowController<R extends FlowRequest = FlowRequest> implements FlowGate<R> {
  private readonly engine: Engine;
  /** Takes the calls of hosts: the intake, except in mode `shadow`. */
  private entry: Pick<Standing, 'enter' | 'tryEnqueue'>;
  private given: FlowControllerOptions<R>;

  /** @throws FlowConfigError listing everything that is wrong with the options */
  constructor(options: FlowControllerOptions<R>) {
    const resolved = resolveOptions(options);
    this.given = standing(options, resolved);
    warnOfShortTtls(options, resolved.clock);
    warnOfLimits(options, resolved);
    this.engine = new Engine(resolved, new EventHub());
    this.entry = entryOf(this.engine, resolved);
  }

  /** True in mode `shadow`: figures, events and explanations then tell what would have happened. */
  get isShadow(): boolean {
    return this.engine.shadow !== undefined;
  }

  /**
   * Asks for the right to run a request. Resolves once, with a lease or the reason why not. O(1), or O(log waiting)
   * when not by arrival. @throws (rejects) FlowConfigError for a wrong `byteSize`, `fairnessId` or priority
   */
  enqueue(request: R, key: FlowKey): Promise<Outcome> {
    const entered = this.entry.enter(request, key);
    return entered instanceof Promise ? entered : Promise.resolve(entered);
  }

  /**
   * As `enqueue`, but returns the outcome itself when it is known at once. Before a wait it calls `waiting` once, which
   * makes the request as it waits; its figures stay. @throws (rejects) FlowConfigError as `enqueue`
   */
  enter(request: R, key: FlowKey, waiting?: () => R): Outcome | Promise<Outcome> {
    return this.entry.enter(request, key, waiting);
  }

  /**
   * The outcome when it is known at once; undefined, and no arrival, when the request would have to wait, and always
   * inside a plugin or listener of this controller. @throws FlowConfigError as `enqueue`
   */
  tryEnqueue(request: R, key: FlowKey): Outcome | undefined {
    return this.entry.tryEnqueue(request, key);
  }

  /**
   * Enqueues, runs `work` with the lease, and releases the lease when `work` ends, however it ends. With
   * `onEvicted: 'requeue'` a request that is evicted before it produced tokens waits again, once, and `work` is called
   * again with another lease. A request that is evicted before `work` was called ends in a FlowEvictedError.
   * @returns what `work` returns
   * @throws FlowControlError when the request was dropped, with what `work` threw as its `cause` if it ran; whatever
   * `work` throws; FlowConfigError for a call that cannot be right
   */
  async run<T>(
    request: R,
    key: FlowKey,
    work: (lease: Lease) => T | PromiseLike<T>,
    options: RunOptions = {},
  ): Promise<T> {
    checkRun(work, options);
    let outcome = await this.enqueue(request, key);
    let thrown: unknown;
    for (;;) {
      if (outcome.type !== 'Dispatched')
        throw Object.assign(new FlowControlError(outcome), thrown === undefined ? {} : { cause: thrown });
      const { lease } = outcome;
      try {
        if (lease.isEvicted) {
          lease.unsent();
          throw lease.signal.reason;
        }
        return await work(lease);
      } catch (error) {
        if (options.onEvicted !== 'requeue' || !lease.isEvicted || lease.isReleased) throw error;
        thrown = error;
        outcome = await lease.requeue();
      } finally {
        lease.release();
      }
    }
  }

  /** Returns a function that stops it. Throws of listeners are reported. @throws FlowConfigError for unknown events */
  on<E extends keyof FlowEvents>(event: E, listener: (payload: FlowEvents<R>[E]) => unknown): () => void {
    return this.engine.events.on(event, listener as (payload: FlowEvents[E]) => unknown);
  }

  /**
   * Replaces the options that are given and keeps the others; an option given as undefined returns to its default.
   * Applies to live queues at once: requests that wait are lined up under the new policies, and a smaller limit only
   * keeps new ones out. @throws FlowConfigError listing everything that is wrong; nothing has changed then. `clock` and
   * `pool` cannot be replaced
   */
  reconfigure(changes: Partial<FlowControllerOptions<R>>): void {
    const expected = 'the one that the controller was made with';
    const issues = (['clock', 'pool'] as const).flatMap((path) => {
      const isFixed = changes[path] !== undefined && changes[path] !== this.given[path];
      return isFixed ? { path, expected, got: describeValue(changes[path]) } : [];
    });
    if (issues.length > 0) throw new FlowConfigError('reconfigure', issues);
    const { clock, pool } = this.given;
    const given = { ...this.given, ...changes, clock, pool };
    if (changes.maxConcurrency !== undefined) given.saturationDetector = changes.saturationDetector;
    const resolved = resolveOptions(given, 'reconfigure');
    this.given = standing(given, resolved);
    warnOfShortTtls(changes, resolved.clock);
    if ('limits' in changes || 'bands' in changes || 'overflow' in changes) warnOfLimits(given, resolved);
    this.engine.reconfigure(resolved);
    this.entry = entryOf(this.engine, resolved);
  }

  /** Asks `flows` again for one fairness ID. The answer applies at once, also to what waits. */
  refreshFlow(fairnessId: string): void {
    this.engine.refreshFlow(fairnessId);
  }

  /**
   * Stops admission, lets waiting requests go for `drainMs` more, then evicts the rest; leases stay valid. A later call
   * can only shorten the time. @throws (rejects) FlowConfigError for wrong options
   */
  close(options: CloseOptions = {}): Promise<void> {
    const verdict = s.validate(closeOptions, options);
    if (!verdict.ok) return Promise.reject(new FlowConfigError('close', verdict.issues));
    this.engine.shadow?.endWithCallers();
    return this.engine.close(verdict.value.drainMs);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /**
   * How many more may wait in a band: its `maxRequests` less those that wait, from 0 up; undefined without such a
   * limit, and in mode `shadow`. O(1). Source: llm-d-router, `x-llm-d-flow-band-headroom-requests`.
   */
  bandHeadroom(priority: number): number | undefined {
    return this.isShadow ? undefined : this.engine.backlog.bands.headroomOf(priority);
  }

  /** Figures: what exporters and autoscalers read. O(bands + in flight), and one reading of the detector. */
  figures(): ControllerFigures {
    return this.engine.figures((nowMs) => takeFigures(this.engine, nowMs));
  }

  /** The counts among the figures, as `figures().stats`. */
  stats(): FlowStats {
    return this.engine.figures((nowMs) => takeStats(this.engine, nowMs));
  }
}

/** The receiver of the host's calls: the intake, or in mode `shadow` what stands before it. */
function entryOf(engine: Engine, { mode, clock }: ResolvedOptions): Pick<Standing, 'enter' | 'tryEnqueue'> {
  if (isShadow(mode)) return engine.shadow ?? mode.begin(engine, clock);
  engine.shadow?.stop();
  return engine.intake;
}

function isShadow(mode: ResolvedOptions['mode']): mode is ShadowMaker {
  return typeof mode === 'object';
}

/** The options as the next `reconfigure` finds them: the detector that `maxConcurrency` was short for stays. */
function standing<R extends FlowRequest>(given: FlowControllerOptions<R>, { saturationDetector }: ResolvedOptions) {
  const standing = saturationDetector === noDetector ? undefined : saturationDetector;
  return { ...given, maxConcurrency: undefined, saturationDetector: standing };
}
