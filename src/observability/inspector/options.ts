/** The options of `inspector`, and what they see of a request. */
import type { HeaderSource } from '../../base/headers/header-source.js';
import type { Clock } from '../../index.js';
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

export interface InspectorOptions {
  /** Whether this request may look, or the answer to one that may not (`basicLogin`). Without it all get 403. */
  authorize?: ((request: InspectorRequest) => boolean | Response | Promise<boolean | Response>) | undefined;
  /**
   * The names, without ports, by which the page may be asked for (`Host`); others are answered with 421. Set them,
   * because a stranger's page can point a name of its own to your server. @default any
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
  /**
   * The part of shared limits that this replica holds: `() => ({ leases: shared.status, quotas })`, of
   * `headgate/redis`. It is asked for each frame. @default nothing is shown
   */
  shared?: (() => InspectedShares) | undefined;
  /** @default the platform's monotonic clock */
  clock?: Clock | undefined;
}
