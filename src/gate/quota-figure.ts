/** The figures of quotas that a detector tells, for pages and exporters. */

/** One quota of one group, at one instant. */
export interface QuotaFigure {
  /** The group that shares it: an endpoint, an account, a model family, or the pool. */
  readonly group: string;
  readonly unit: 'requests' | 'inputTokens' | 'outputTokens' | 'tokens' | 'cost';
  /** Units in `perMs`. */
  readonly limit: number;
  readonly perMs: number;
  /** Settled units that are not free again. */
  readonly used: number;
  /** Units that running requests hold by their estimates. */
  readonly reserved: number;
  /** Until all of it is free again, if nothing more is taken; ms. */
  readonly resetsInMs: number;
  /** Until there is room for one unit; 0 while there is. */
  readonly waitMs: number;
  /** How long the group still rests, because its server refused; 0 while it does not rest. */
  readonly restsForMs: number;
  /** True when it was learnt from answers; false when it is configured. */
  readonly isLearnt: boolean;
  /** True when other processes take from it too: `used` is what all took, as far as is known. @default false */
  readonly isShared?: boolean;
}

/** The quotas, and counts of the reports and figures that could not be used. */
export interface QuotaFigures {
  readonly quotas: readonly QuotaFigure[];
  /** Requests that ended without a report of what they consumed, so that their estimates stand. */
  readonly unreported: number;
  /** Reports that cannot be right, and that were ignored. */
  readonly ignoredReports: number;
  /** Figures in headers that cannot be right, and that were ignored. */
  readonly ignoredFigures: number;
  /** Answers of servers that put a request off (429, 529). */
  readonly refusals: number;
}
