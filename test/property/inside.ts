/** The inside of a controller, for checks that no public figure allows. */

import type { Engine } from '../../src/core/engine/engine.js';
import { QueueItem } from '../../src/core/engine/queue-item.js';
import * as readers from '../../src/core/inspect/engine-of.js';
import type { ResolvedOptions } from '../../src/core/options.js';
import type { Constraint } from '../../src/gate/constraint.js';
import { isConstraint, isDetector, partsOf } from '../../src/gate/parts.js';
import type { SaturationDetector } from '../../src/gate/saturation-detector.js';
import type { EndpointView, FlowController, ItemView } from '../../src/index.js';

export function engineOf(flow: FlowController<never>): Engine {
  return readers.engineOf(flow) as Engine;
}

/** The options that are in force, whatever a reconfiguration that waits its turn will bring. */
export function optionsOf(flow: FlowController<never>): ResolvedOptions {
  return engineOf(flow).options;
}

/** The detector of a band's own, by the options in force. */
export function ownDetectorOf(flow: FlowController<never>, priority: number): SaturationDetector | undefined {
  const { bands, defaultBand, defaultNegativeBand } = optionsOf(flow);
  const settings =
    bands.find((band) => band.priority === priority) ?? (priority < 0 ? defaultNegativeBand : defaultBand);
  return settings.saturationDetector;
}

/** The constraints that judge requests: those of the list, and those of `detectors`, by default of all in force. */
export function constraintsOf(flow: FlowController<never>, ...detectors: SaturationDetector[]): readonly Constraint[] {
  const { bands, defaultBand, defaultNegativeBand, saturationDetector, constraints } = optionsOf(flow);
  const own = [...bands, defaultBand, defaultNegativeBand].flatMap((band) => band.saturationDetector ?? []);
  const asked = detectors.length > 0 ? detectors : [saturationDetector, ...own];
  return partsOf(...constraints, ...asked).flatMap(({ plugin }) => (isConstraint(plugin) ? plugin : []));
}

/** True for a detector that does not announce every change. */
export function isSilent(detector: SaturationDetector): boolean {
  return partsOf(detector).some(
    ({ plugin }) => isDetector(plugin) && plugin.parts === undefined && plugin.subscribe === undefined,
  );
}

/** Where a controller without a pool sends everything. */
export function implicitEndpointOf(flow: FlowController<never>): readonly EndpointView[] {
  return [engineOf(flow).placement.implicitEndpoint ?? []].flat();
}

/** True from a walk that stopped to let the event loop turn until the next turn. */
export function isPaused(flow: FlowController<never>): boolean {
  return engineOf(flow).wakeups.isPaused;
}

/** What the engine knows of a request, beside what is told of it. */
export function itemInside(item: ItemView): QueueItem {
  if (item instanceof QueueItem) return item;
  throw new Error('a request is told of that the engine did not make');
}
