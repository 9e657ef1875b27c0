/** The inside of a controller, for readers that stand beside it: who does not import them has none of their code. */
import { configError, describeValue } from '../../base/faults/flow-config-error.js';
import type { Engine } from '../engine/engine.js';
import type { FlowController } from '../flow-controller.js';

/** Undefined for anything but a controller. Only this function looks inside. */
export function engineOf(flow: FlowController<never>): Engine | undefined {
  // biome-ignore lint/complexity/useLiteralKeys: the field is private, so that no user of the package sees it
  return flow?.['engine'];
}

/** @throws FlowConfigError for anything but a controller; `reader` opens its message */
export function engineFor(reader: string, flow: FlowController<never>): Engine {
  const engine = engineOf(flow);
  if (engine === undefined) throw configError(reader, 'flow', 'a FlowController', describeValue(flow));
  return engine;
}
