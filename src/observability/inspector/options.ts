/** The options of `inspector`, and their checks. */
import type { HeaderSource } from '../../base/headers/header-source.js';
import * as s from '../../base/schema/schema.js';
import { type Clock, realClock } from '../../index.js';
import type { OverviewBounds } from '../../types/index.js';
import type { InspectedShares } from './shared-limits.js';

/** The part of a request that decides who may look. */
export interface InspectorRequest {
  readonly method: string;
  /** As the host's framework hands it over: mounts may have taken their prefix off. */
  readonly url: string;
  readonly headers: HeaderSource;
  /** The address of the connection, where the host tells it. */
  readonly address?: string | undefined;
}

export type InspectorView = 'frame' | 'find';

export interface InspectorOptions {
  /** Whether this request may look, or the answer to one that may not (`basicLogin`). Without it all get 403. */
  authorize?: ((request: InspectorRequest) => boolean | Response | Promise<boolean | Response>) | undefined;
  /**
   * Names, without ports, by which the page may be asked for; others get 421. Set them, because a stranger's page can
   * point a name of its own to your server. @default any
   */
  hosts?: readonly string[] | ((host: string) => boolean) | undefined;
  /** The name by which a waiting request is found. @default `id` or `requestId`, or its `req`'s `x-request-id` */
  idOf?: ((request: never) => string | undefined) | undefined;
  /** Whether the last minutes are kept while nobody looks: a reading in 5 s, two counts a request. @default true */
  history?: boolean | undefined;
  /** `hidden`: flows appear as `flow 1`, `flow 2`, … @default 'shown' */
  fairnessIds?: 'shown' | 'hidden' | undefined;
  /** Between two frames, ms, from 100 to 5,000. @default 500 */
  intervalMs?: number | undefined;
  /** Pages that may watch at a time, from 1 up; the next one is answered with 503. @default 16 */
  maxWatchers?: number | undefined;
  /** How much of each a frame shows; the rest is counted. @default 8 flows of a band, 12 in all, 6 waits */
  bounds?: OverviewBounds | undefined;
  /** Its part of shared limits, for each frame: `() => ({ leases: shared.status, quotas })`. @default not shown */
  shared?: (() => InspectedShares) | undefined;
  /** Answers for several processes, of which each is asked by `alone`. @default this process alone */
  together?: ((view: InspectorView, id: string) => Promise<unknown>) | undefined;
  /** @default the platform's monotonic clock */
  clock?: Clock | undefined;
}

/** As they are read. */
type Resolved = s.Filled<Omit<InspectorOptions, 'hosts'>, 'authorize' | 'shared' | 'together'> & {
  readonly hosts: (host: string) => boolean;
};

/** Where hosts usually have it. */
function usualId(request: unknown): string | undefined {
  const { id, requestId, req }: Record<string, unknown> = { ...Object(request) };
  const headers: unknown = Reflect.get(Object(req), 'headers');
  const named = id ?? requestId ?? Reflect.get(Object(headers), 'x-request-id');
  return typeof named === 'string' || typeof named === 'number' ? String(named) : undefined;
}

const hosts = s.element<(host: string) => boolean>((given, report) => {
  if (typeof given === 'function') return (host) => given(host);
  const named = s.validate(s.list(s.text()), given);
  return named.ok ? (host) => named.value.includes(host) : report('a list of names, or a function that knows them');
});

/** Frames stay small whatever is asked for. */
const upTo = (to: number) => s.optional(s.integer({ from: 0, to }));

export const inspectorOptions: s.Schema<Resolved> = s.object({
  authorize: s.optional(
    s.callable<NonNullable<InspectorOptions['authorize']>>('a function that tells whether a request may look'),
  ),
  idOf: s.optional(
    s.callable<NonNullable<InspectorOptions['idOf']>>('a function that answers the name of a request'),
    usualId,
  ),
  hosts: s.optional(hosts, () => true),
  history: s.optional(s.flag(), true),
  fairnessIds: s.optional(s.oneOf('shown', 'hidden'), 'shown'),
  intervalMs: s.optional(s.number({ from: 100, to: 5_000 }), 500),
  maxWatchers: s.optional(s.positiveInteger(), 16),
  bounds: s.optional(
    s.object({ flows: upTo(50), waits: upTo(50) } satisfies Record<keyof OverviewBounds, unknown>),
    {},
  ),
  shared: s.optional(s.callable<NonNullable<InspectorOptions['shared']>>('a function that answers what is shared')),
  together: s.optional(s.callable<NonNullable<InspectorOptions['together']>>()),
  clock: s.optional(s.clock(), realClock),
} satisfies Record<keyof InspectorOptions, unknown>);
