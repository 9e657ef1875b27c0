/** Constraints, listeners and announcements without a controller. */
import { ConstraintList } from '../../src/gate/constraint-list.js';
import { GuardedDetector } from '../../src/gate/guarded-detector.js';
import { isConstraint, partsOf } from '../../src/gate/parts.js';
import { SeatListeners } from '../../src/gate/seat-listeners.js';
import type { Constraint, SaturationDetector } from '../../src/index.js';
import type { BandRegistry } from '../../src/tiers/band-registry.js';

/** A detector that may also judge each request by itself. */
export type JudgingDetector = SaturationDetector & Partial<Constraint>;

const noBands = { all: () => [] } as unknown as BandRegistry;

/** The constraints among these plugins and their parts; `faults` gets what they do wrong. */
export function constraintsIn(
  plugins: readonly (SaturationDetector | Constraint)[],
  faults: string[] = [],
): ConstraintList {
  const pluginFailed = (kind: string, type: string, error: unknown): void =>
    void faults.push(`${kind} ${type}: ${String(error)}`);
  const list = new ConstraintList(noBands, { pluginFailed }, () => {});
  const terms = partsOf(...plugins).flatMap(({ plugin, judges }) =>
    isConstraint(plugin) ? { plugin, judges, isFor: undefined, isRead: true } : [],
  );
  list.configure(terms, 10, false);
  return list;
}

/** Tells these plugins and their parts of seats. */
export function listenersIn(...plugins: readonly (SaturationDetector | Constraint)[]): SeatListeners {
  const listeners = new SeatListeners({ pluginFailed: () => {} });
  listeners.configure(partsOf(...plugins), undefined, []);
  return listeners;
}

/** True when the gate needs no timer for the detector. `onAnnounced` hears each change. */
export function announces(detector: SaturationDetector, onAnnounced: () => void = () => {}): boolean {
  const guarded = new GuardedDetector(
    detector,
    { closeAt: 1, openAt: 1, failValue: 1 },
    { pluginFailed: () => {} },
    onAnnounced,
  );
  const endpoint = { id: 'a', inFlightRequests: 0, inFlightTokens: 0, weight: 1, labels: {} };
  guarded.read({ endpoints: [endpoint as never], inFlightRequests: 0, inFlightTokens: 0 }, 0);
  guarded.stop();
  return guarded.announces;
}
