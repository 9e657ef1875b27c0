/**
 * Decides when a server that refused gets no work for a while. One refusal is not enough. A client may have found a
 * request that every server refuses, and could take one server after the other away from everybody.
 */
import type { EndpointPool, EndpointView } from '../../index.js';

/** Refusals within the time for which a server would be avoided. */
const enough = 3;

interface Refusals {
  count: number;
  sinceMs: number;
}

export class RefusalTracker {
  private readonly pool: EndpointPool;
  private readonly refusals = new WeakMap<EndpointView, Refusals>();

  constructor(pool: EndpointPool) {
    this.pool = pool;
  }

  /** Marks the server for `avoidForMs` when the evidence is enough, or `isCertain`, and another server is left. */
  refused(endpoint: EndpointView, avoidForMs: number, isCertain: boolean): void {
    const nowMs = this.pool.now();
    if (!isCertain && !this.isEnough(endpoint, avoidForMs, nowMs)) return;
    const isLast = this.pool.endpoints.every(
      (other) => other === endpoint || other.state !== 'ready' || other.overloadedUntilMs > nowMs,
    );
    if (!isLast) this.pool.markOverloaded(endpoint, avoidForMs);
  }

  private isEnough(endpoint: EndpointView, windowMs: number, nowMs: number): boolean {
    const known = this.refusals.get(endpoint);
    if (known === undefined || nowMs - known.sinceMs > windowMs) {
      this.refusals.set(endpoint, { count: 1, sinceMs: nowMs });
      return false;
    }
    known.count += 1;
    if (known.count < enough) return false;
    this.refusals.delete(endpoint);
    return true;
  }
}
