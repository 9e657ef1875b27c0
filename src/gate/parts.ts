/** What a detector is made of: the controller listens to each part for itself, and asks each constraint among them. */
import { memberOf } from '../base/faults/foreign-values.js';
import type { PluginErrorSink } from '../base/faults/plugin-errors.js';
import { PluginGuard } from '../base/faults/plugin-guard.js';
import type { EndpointView } from '../endpoints/endpoint.js';
import type { Constraint } from './constraint.js';
import type { DetectorReading, Part, SaturationDetector } from './saturation-detector.js';
import type { SeatListener } from './seat-listener.js';

/** Anything that a controller asks, or tells of seats. */
export type Plugin = SeatListener & { readonly type: string };

/** A part and the endpoints that it judges; without `judges`: all. */
export interface ScopedPart<P = Plugin> {
  readonly plugin: P;
  readonly judges: ((endpoint: EndpointView) => boolean) | undefined;
}

/** The plugins and, recursively, their parts: each once, for the endpoints of all the places where it stands. */
export function partsOf(...plugins: readonly Plugin[]): ScopedPart[] {
  const found = new Map<Plugin, ScopedPart>();
  for (const plugin of plugins) collect({ plugin, judges: undefined }, found, new Set());
  return [...found.values()];
}

function collect(part: ScopedPart, found: Map<Plugin, ScopedPart>, path: ReadonlySet<Plugin>): void {
  const { plugin, judges } = part;
  if (path.has(plugin)) return;
  const known = found.get(plugin);
  found.set(plugin, known === undefined ? part : { plugin, judges: either(known.judges, judges) });
  const inner: unknown = memberOf(plugin, 'parts');
  if (!Array.isArray(inner)) return;
  const deeper = new Set([...path, plugin]);
  for (const each of inner as readonly Part[])
    collect({ plugin: each.plugin, judges: both(judges, each.judges) }, found, deeper);
}

type Judges = ScopedPart['judges'];

function both(a: Judges, b: Judges): Judges {
  return a === undefined || b === undefined ? (a ?? b) : (endpoint) => a(endpoint) && b(endpoint);
}

function either(a: Judges, b: Judges): Judges {
  return a === undefined || b === undefined ? undefined : (endpoint) => a(endpoint) || b(endpoint);
}

export function isConstraint(plugin: Plugin): plugin is Constraint {
  return memberOf(plugin, 'withRoomFor') !== undefined;
}

export function isDetector(plugin: Plugin): plugin is SaturationDetector {
  return memberOf(plugin, 'saturation') !== undefined;
}

/** Reports the faults of a part. */
export function guardOf(plugin: Plugin, errors: PluginErrorSink): PluginGuard {
  return new PluginGuard(isDetector(plugin) ? 'saturationDetector' : 'constraint', plugin, errors);
}

/** A constraint where a file names a detector: its fullness is the pool's; the controller finds it as a part. */
export function detectorFor(constraint: Constraint): SaturationDetector {
  return {
    type: constraint.type,
    saturation: ({ endpoints }, nowMs) => (endpoints.length === 0 ? 1 : (constraint.fullness?.(endpoints, nowMs) ?? 0)),
    subscribe: () => () => {},
    parts: [{ plugin: constraint }],
  };
}

/** Of detectors that are made of others, what each of these read; the fullest of one name. */
export function partReadings(detectors: readonly { readonly parts: readonly ScopedPart[] }[]): DetectorReading[] {
  const fullest = new Map<string, DetectorReading>();
  for (const { plugin } of detectors.flatMap(({ parts }) => parts)) {
    const readings: unknown = memberOf(plugin, 'readings');
    for (const each of Array.isArray(readings) ? (readings as readonly DetectorReading[]) : []) {
      const key = `${each?.stage} ${each?.detector}`;
      if (each?.saturation >= (fullest.get(key)?.saturation ?? 0)) fullest.set(key, each);
    }
  }
  return [...fullest.values()];
}
