/** The controller's private state, for checks that no public figure allows. */

import type { Dispatcher } from '../../src/core/engine/dispatcher.js';
import type { ResolvedOptions } from '../../src/core/options.js';
import type { SaturationDetector } from '../../src/gate/saturation-detector.js';

export function dispatcherOf(flow: object): Dispatcher {
  return Reflect.get(flow, 'dispatcher') as Dispatcher;
}

/** The options that are in force, whatever a reconfiguration that waits its turn will bring. */
export function optionsOf(flow: object): ResolvedOptions {
  return Reflect.get(dispatcherOf(flow), 'options') as ResolvedOptions;
}

/** The detector of a band's own, by the options in force. */
export function ownDetectorOf(flow: object, priority: number): SaturationDetector | undefined {
  const { bands, defaultBand, defaultNegativeBand } = optionsOf(flow);
  const settings =
    bands.find((band) => band.priority === priority) ?? (priority < 0 ? defaultNegativeBand : defaultBand);
  return settings.saturationDetector;
}

/** True from a walk that stopped to let the event loop turn until the next turn. */
export function isPaused(flow: object): boolean {
  return dispatcherOf(flow).isPaused;
}
