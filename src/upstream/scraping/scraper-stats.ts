/** What a scraper tells of itself. */
import type { ListenerErrors } from '../../base/faults/guarded-events.js';
import type { EndpointView } from '../../index.js';
import type { ScrapeError } from '../asking.js';

/** The events of a scraper. */
export interface ScraperEvents extends ListenerErrors {
  /** An endpoint stopped answering, or never began to; once until it recovers. */
  failed: { readonly endpoint: EndpointView; readonly error: ScrapeError };
  /** It answers again. */
  recovered: { readonly endpoint: EndpointView; readonly failures: number; readonly failedForMs: number };
}

export interface TargetStats {
  readonly id: string;
  /** Undefined when there is none to ask. Without its query. */
  readonly url: string | undefined;
  /** The engine that it was found to be. */
  readonly profile: string | undefined;
  readonly isFailing: boolean;
  /** Since the last good answer. */
  readonly failures: number;
  readonly lastError: ScrapeError | undefined;
  /** The pool has no metrics of it, or old ones. */
  readonly isStale: boolean;
  /** How long the last good answer took. */
  readonly lastDurationMs: number | undefined;
}

export interface ScraperStats {
  /** Endpoints that are asked. */
  readonly targets: number;
  readonly failing: number;
  /** Targets without metrics within `stalenessThresholdMs`. Stale and not failing: answers come too slowly. */
  readonly stale: number;
  readonly underWay: number;
  /** Answers ever taken, and attempts that brought none. */
  readonly scrapes: number;
  readonly failures: number;
  readonly endpoints: readonly TargetStats[];
}
