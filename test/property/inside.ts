/** The inside of a controller, for checks that no public figure allows. */

import type { Engine } from '../../src/core/engine/engine.js';
import { QueueItem } from '../../src/core/engine/queue-item.js';
import * as audited from '../../src/core/inspect/audit.js';
import type { ResolvedOptions } from '../../src/core/options.js';
import type { SaturationDetector } from '../../src/gate/saturation-detector.js';
import type { EndpointView, FlowController, ItemView } from '../../src/index.js';

export function engineOf(flow: FlowController<never>): Engine {
  return audited.engineOf(flow) as Engine;
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
