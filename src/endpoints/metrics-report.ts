/** What a model server reported, checked and laid over what was known of it. */
import { type ConfigIssue, describeValue, FlowConfigError } from '../base/faults/flow-config-error.js';
import type { EndpointMetrics, LoraAdapters, RankLoad } from './endpoint.js';

/** A report without a sample time was sampled now. */
export type MetricsReport = Omit<EndpointMetrics, 'sampledAtMs'> & { sampledAtMs?: number | undefined };

const rankFigures = ['activeDecodeBlocks', 'kvUsedBlocks', 'activePrefillTokens', 'totalBlocks', 'maxNumBatchedTokens'] as const;

/**
 * The metrics after a report: what it leaves out of `ranks` and `loraAdapters` stays as it was. Undefined when the report is older than
 * what is known. A sample from the future counts as taken now, since it would never become stale.
 */
export function mergeReport(report: MetricsReport, known: EndpointMetrics | undefined, nowMs: number): EndpointMetrics | undefined {
  const { waitingQueueSize, runningRequests, kvCacheUsage } = report;
  const sampledAtMs = Math.min(report.sampledAtMs ?? nowMs, nowMs);
  if (known !== undefined && sampledAtMs < known.sampledAtMs) return undefined;
  const ranks = report.ranks === undefined ? known?.ranks : mergeRanks(report.ranks, known?.ranks);
  const loraAdapters = report.loraAdapters ?? known?.loraAdapters;
  return {
    waitingQueueSize,
    runningRequests,
    kvCacheUsage,
    sampledAtMs,
    ...(ranks === undefined ? {} : { ranks }),
    ...(loraAdapters === undefined ? {} : { loraAdapters }),
  };
}

function mergeRanks(reported: readonly RankLoad[], known: readonly RankLoad[] = []): readonly RankLoad[] {
  return reported.map((rank, index) => {
    const before = known[index];
    return Object.fromEntries(rankFigures.map((name) => [name, rank[name] ?? before?.[name]]));
  });
}

/** @throws FlowConfigError that lists every figure that cannot be right. */
export function checkReport(report: MetricsReport, subject: string): void {
  const { waitingQueueSize, runningRequests, kvCacheUsage, sampledAtMs = 0, ranks, loraAdapters } = report;
  const issues = [
    ...wrongFigures({ waitingQueueSize, runningRequests, kvCacheUsage, sampledAtMs }),
    ...wrongRanks(ranks),
    ...wrongAdapters(loraAdapters),
  ];
  if (issues.length > 0) throw new FlowConfigError(subject, issues);
}

function wrongFigures(figures: Readonly<Record<string, unknown>>): ConfigIssue[] {
  const wrong = Object.entries(figures).filter(([, figure]) => !(Number.isFinite(figure) && Number(figure) >= 0));
  return wrong.map(([path, figure]) => ({ path, expected: 'a number from 0 up', got: describeValue(figure) }));
}

function wrongRanks(ranks: readonly RankLoad[] | undefined): ConfigIssue[] {
  if (ranks === undefined) return [];
  if (!Array.isArray(ranks)) return [{ path: 'ranks', expected: 'an array with one entry for each rank', got: describeValue(ranks) }];
  return ranks.flatMap((rank: unknown, index) => {
    const path = `ranks[${index}]`;
    if (typeof rank !== 'object' || rank === null) return [{ path, expected: 'an object of figures', got: describeValue(rank) }];
    const given = rankFigures.flatMap((name) => (Reflect.get(rank, name) === undefined ? [] : [[name, Reflect.get(rank, name)] as const]));
    return wrongFigures(Object.fromEntries(given)).map((issue) => ({ ...issue, path: `${path}.${issue.path}` }));
  });
}

function wrongAdapters(adapters: LoraAdapters | undefined): ConfigIssue[] {
  if (adapters === undefined) return [];
  if (typeof adapters !== 'object' || adapters === null) {
    return [{ path: 'loraAdapters', expected: 'an object with running and waiting', got: describeValue(adapters) }];
  }
  const { running, waiting, max } = adapters;
  const lists = Object.entries({ running, waiting }).filter(([, names]) => !isListOfTexts(names));
  return [
    ...lists.map(([name, got]) => ({ path: `loraAdapters.${name}`, expected: 'an array of names', got: describeValue(got) })),
    ...(max === undefined ? [] : wrongFigures({ 'loraAdapters.max': max })),
  ];
}

function isListOfTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((entry) => typeof entry === 'string');
}
