/** The inside of a controller, for checks that no public figure allows. */

import type { Dispatcher } from '../../src/core/engine/dispatcher.js';
import { QueueItem } from '../../src/core/engine/queue-item.js';
import * as audited from '../../src/core/inspect/audit.js';
import type { ResolvedOptions } from '../../src/core/options.js';
import type { SaturationDetector } from '../../src/gate/saturation-detector.js';
import type { EndpointView, FlowController, ItemView } from '../../src/index.js';

export function dispatcherOf(flow: FlowController<never>): Dispatcher {
  return audited.dispatcherOf(flow) as Dispatcher;
}

/** The options that are in force, whatever a reconfiguration that waits its turn will bring. */
export function optionsOf(flow: FlowController<never>): ResolvedOptions {
  return dispatcherOf(flow).options;
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
  return [dispatcherOf(flow).placement.implicitEndpoint ?? []].flat();
}

/** True from a walk that stopped to let the event loop turn until the next turn. */
export function isPaused(flow: FlowController<never>): boolean {
  return dispatcherOf(flow).isPaused;
}

/** What the engine knows of a request, beside what is told of it. */
export function itemInside(item: ItemView): QueueItem {
  if (item instanceof QueueItem) return item;
  throw new Error('a request is told of that the engine did not make');
}
