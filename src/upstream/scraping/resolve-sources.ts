/** From the profile that a host chose to selectors, once for each endpoint. */
import { describeValue } from '../../base/faults/flow-config-error.js';
import { rankFigures } from '../../base/rank-figures.js';
import * as s from '../../base/schema/schema.js';
import { type EndpointView, FlowConfigError, type Schema } from '../../index.js';
import { type LoadSources, type MetricSelector, parseSelector } from './load-reading.js';
import { type MetricProfile, type MetricSources, metricProfiles } from './metric-sources.js';

/** The label by which llm-d's router tells engines apart. */
export const engineTypeLabel = 'llm-d.ai/engine-type';

/** An engine, or a host's own metrics. */
export type ProfileChoice = MetricProfile | MetricSources;
/** The same for all endpoints, or by a function; undefined = by the label `llm-d.ai/engine-type`, else find out. */
export type ProfileOption = ProfileChoice | ((endpoint: EndpointView) => ProfileChoice | undefined);

/** Selectors of one figure: several where the host named several sources. */
const source: Schema<readonly MetricSelector[]> = s.element((candidate, report) => {
  const listed: readonly unknown[] = Array.isArray(candidate) ? candidate : [candidate];
  const selectors = listed.map(selectorOf).filter((selector) => selector !== undefined);
  if (selectors.length > 0 && selectors.length === listed.length) return selectors;
  const expected = 'a metric such as "my_metric" or "my_metric{label=\\"value\\"}", { metric, valueLabel }';
  return report(`${expected}, or an array of these`);
});

function selectorOf(candidate: unknown): MetricSelector | undefined {
  if (typeof candidate === 'string') return parseSelector(candidate);
  if (typeof candidate !== 'object' || candidate === null) return undefined;
  const metric: unknown = Reflect.get(candidate, 'metric');
  const valueLabel: unknown = Reflect.get(candidate, 'valueLabel');
  return typeof metric === 'string' && typeof valueLabel === 'string' ? parseSelector(metric, valueLabel) : undefined;
}

const ownSources = s.object({
  waitingQueueSize: source,
  ...s.optionals(source, 'runningRequests', 'kvCacheUsage', 'loraAdapters', ...rankFigures),
  rankLabel: s.optional(s.text('the name of a label')),
});

const engines = Object.keys(metricProfiles) as readonly MetricProfile[];
const expectedProfile = `one of ${engines.map((engine) => `"${engine}"`).join(', ')}, or an object of metrics by figure`;

/** @throws FlowConfigError */
export function resolveChoice(choice: unknown, subject: string): LoadSources {
  const isEngine = engines.some((engine) => engine === choice);
  const named = isEngine ? metricProfiles[choice as MetricProfile] : choice;
  if (typeof named !== 'object' || named === null)
    throw new FlowConfigError(subject, [{ path: '', expected: expectedProfile, got: describeValue(choice) }]);
  const { loraAdapters, rankLabel, ...selectors } = s.parse(ownSources, named, subject);
  return { name: isEngine ? String(choice) : 'of its own', selectors, loraAdapters: loraAdapters?.[0], rankLabel };
}

const everyEngine = engines.map((engine) => resolveChoice(engine, engine));

/** The kinds of server that an endpoint may be, likeliest first. */
export function candidatesFor(endpoint: EndpointView, option: ProfileOption | undefined): readonly LoadSources[] {
  const choice = typeof option === 'function' ? option(endpoint) : option;
  if (choice !== undefined) return [resolveChoice(choice, `scrape: profile of ${endpoint.id}`)];
  // The router's name for Triton with TensorRT-LLM.
  const engineType = endpoint.labels[engineTypeLabel]?.replace(/^triton-tensorrt-llm$/, 'triton');
  const labelled = everyEngine.filter(({ name }) => name === engineType);
  return labelled.length > 0 ? labelled : everyEngine;
}
