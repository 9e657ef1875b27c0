/** When a server that refused gets no work for a while: not after one, for a request may exist that all refuse. */
import type { EndpointPool, EndpointView } from '../../index.js';

/** Refusals within the time for which a server would be avoided. */
const enough = 3;

/** Marks a server for `avoidForMs` when the evidence is enough, or `isCertain`, and another server is left. */
export type RefusalTracker = (endpoint: EndpointView, avoidForMs: number, isCertain: boolean) => void;

export function refusalTracker(pool: EndpointPool): RefusalTracker {
  const refusals = new WeakMap<EndpointView, { count: number; readonly sinceMs: number }>();

  function isEnough(endpoint: EndpointView, windowMs: number, nowMs: number): boolean {
    let known = refusals.get(endpoint);
    if (known === undefined || nowMs - known.sinceMs > windowMs) {
      known = { count: 0, sinceMs: nowMs };
      refusals.set(endpoint, known);
    }
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
