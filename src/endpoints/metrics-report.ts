/** Checks the report of a model server, and merges it with the metrics known so far. */
import { rankFigures } from '../base/rank-figures.js';
import * as s from '../base/schema/schema.js';
import type { EndpointMetrics, RankLoad } from './endpoint.js';

/** One rank's report: a figure left out stays as it was; null is not known any more. */
export type RankReport = { readonly [K in keyof RankLoad]: RankLoad[K] | null };

/** A report without a sample time was sampled now. */
export type MetricsReport = Omit<EndpointMetrics, 'sampledAtMs' | 'ranks'> & {
  sampledAtMs?: number | undefined;
  /** How long a request takes to the server's counts, ms, from 0 up: later ones are not in the sample. @default 0 */
  travelMs?: number | undefined;
  readonly ranks?: readonly RankReport[] | undefined;
};

/** The metrics after a report; undefined for one older than what is known. One from the future counts as now. */
export function mergeReport(
  report: MetricsReport,
  known: EndpointMetrics | undefined,
  nowMs: number,
): EndpointMetrics | undefined {
  const { waitingQueueSize, runningRequests, kvCacheUsage } = report;
  const sampledAtMs = Math.min(report.sampledAtMs ?? nowMs, nowMs);
  if (known !== undefined && sampledAtMs < known.sampledAtMs) return undefined;
  const ranks = report.ranks === undefined ? known?.ranks : mergeRanks(report.ranks, known?.ranks);
  const loraAdapters = report.loraAdapters ?? known?.loraAdapters;
  return { waitingQueueSize, runningRequests, kvCacheUsage, sampledAtMs, ranks, loraAdapters };
}

function mergeRanks(reported: readonly RankReport[], known: readonly RankLoad[] = []): readonly RankLoad[] {
  return reported.map((rank, index) => {
    const before = known[index];
    return Object.fromEntries(
      rankFigures.map((name) => [name, rank[name] === null ? undefined : (rank[name] ?? before?.[name])]),
    );
  });
}

const figure = s.number({ from: 0 });
const name = s.value('a name', (given): given is string => typeof given === 'string');
const names = s.list(name, 'an array of names');
const rankFigure = s.optional(s.orNull(figure));
const rankSchema = s.openObject(
  /* @__PURE__ */ Object.fromEntries(/* @__PURE__ */ rankFigures.map((rank) => [rank, rankFigure])),
);

export const reportSchema: s.Schema<unknown> = s.openObject({
  waitingQueueSize: figure,
  runningRequests: figure,
  kvCacheUsage: figure,
  sampledAtMs: s.optional(figure),
  travelMs: s.optional(figure),
  ranks: s.optional(s.list(rankSchema, 'an array with one entry for each rank')),
  loraAdapters: s.optional(s.openObject({ running: names, waiting: names, max: s.optional(figure) })),
});
