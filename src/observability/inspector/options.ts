/** What `inspector` can be told, and the checks of it. */
import type { HeaderSource } from '../../base/headers/header-source.js';
import { type Clock, type ControllerOverview, type OverviewBounds, realClock, schemas } from '../../index.js';

/** The part of a controller that is shown. */
export interface InspectedFlow {
  overview(bounds: OverviewBounds): ControllerOverview;
}

/** The part of a request that decides who may look. */
export interface InspectorRequest {
  readonly method: string;
  /** As the host's framework hands it over: mounts may have taken their prefix off. */
  readonly url: string;
  readonly headers: HeaderSource;
}

export interface InspectorOptions {
  /** Whether this request may look. Without it nobody may: every request is answered with 403. */
  authorize?: ((request: InspectorRequest) => boolean | Promise<boolean>) | undefined;
  /** `hidden`: flows appear as `flow 1`, `flow 2`, … @default 'shown' */
  fairnessIds?: 'shown' | 'hidden' | undefined;
  /** Between two frames, ms, from 100 to 5,000. @default 500 */
  intervalMs?: number | undefined;
  /** Pages that may watch at a time, from 1 up; the next one is answered with 503. @default 16 */
  maxWatchers?: number | undefined;
  /** Of each, how much a frame shows; the rest is counted. @default 32 bands, 8 flows and 12 tenants in each, 6 waits, 64 endpoints */
  bounds?: OverviewBounds | undefined;
  /** @default the platform's monotonic clock */
  clock?: Clock | undefined;
}

export interface ResolvedInspectorOptions {
  readonly authorize: InspectorOptions['authorize'];
  readonly hidesFairnessIds: boolean;
  readonly intervalMs: number;
  readonly maxWatchers: number;
  readonly bounds: OverviewBounds;
  readonly clock: Clock;
}

const { callable, clock, integer, number, object, oneOf, optional, parse, positiveInteger } = schemas;

/** Frames stay small whatever is asked for. */
const upTo = (to: number) => optional(integer({ from: 0, to }));

const optionsSchema = object({
  authorize: optional(callable<NonNullable<InspectorOptions['authorize']>>('a function that tells whether a request may look')),
  fairnessIds: optional(oneOf('shown', 'hidden'), 'shown'),
  intervalMs: optional(number({ from: 100, to: 5_000 }), 500),
  maxWatchers: optional(positiveInteger(), 16),
  bounds: optional(
    object({
      bands: upTo(128),
      flows: upTo(50),
      tenants: upTo(100),
      slowest: upTo(50),
      standings: upTo(100),
      endpoints: upTo(500),
      examined: upTo(1_000_000),
    } satisfies Record<keyof OverviewBounds, unknown>),
    {},
  ),
  clock: optional(clock(), realClock),
} satisfies Record<keyof InspectorOptions, unknown>);

/** @throws FlowConfigError that lists every problem */
export function resolveInspectorOptions(options: InspectorOptions): ResolvedInspectorOptions {
  const { fairnessIds, ...others } = parse(optionsSchema, options, 'inspector');
  return { ...others, authorize: others.authorize, hidesFairnessIds: fairnessIds === 'hidden' };
}
