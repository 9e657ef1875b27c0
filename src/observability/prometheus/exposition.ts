/**
 * What a registry prints, in parts, so that a scrape does not hold the event loop, with the labels' text kept.
 * Invariant: together they are `register.metrics()`; none has more than 500 samples of headgate.
 */
import { put } from '../../base/put.js';
import type { Labels, RegisteredMetric, Sample } from './scraped-metric.js';
import { printedAtOnce, ScrapedMetric, turnOfItsOwn } from './scraped-metric.js';

/** The part of prom-client's `Registry` that is used to print. */
export interface PrintedRegister {
  readonly contentType: string;
  metrics(): Promise<string>;
  getMetricsAsArray(): readonly object[];
  getSingleMetricAsString(name: string): Promise<string>;
}

/** In prom-client, but not in its types. */
interface MetricPrinter {
  getMetricsAsString?(metric: Pick<RegisteredMetric, 'get'>): Promise<string>;
}

/**
 * The text of `register.metrics()` in parts. Each has at most 500 samples, and the event loop turns
 * between one and the next. Gauges and counters are all of the moment at which the first part is asked for; each series
 * of a histogram is of one moment. A registry with default labels, or of OpenMetrics, gives its text in one part.
 * @example
 * for await (const part of exposition(register)) res.write(part);
 * res.end();
 */
export async function* exposition(register: PrintedRegister): AsyncGenerator<string, void, undefined> {
  if (!(await printsPlainly(register))) {
    yield await register.metrics();
    return;
  }
  const metrics = register
    .getMetricsAsArray()
    .map((metric) => ({ metric, readings: metric instanceof ScrapedMetric ? metric.readings() : undefined }));
  let text = '';
  let printed = 0;
  for (const { metric, readings } of metrics) {
    if (metric !== metrics[0]?.metric) text += '\n\n';
    const { name, help, type } = metric as { readonly name: string; readonly help: string; readonly type: string };
    if (readings === undefined) {
      text += await register.getSingleMetricAsString(name);
      continue;
    }
    text += `# HELP ${name} ${help}\n# TYPE ${name} ${type}`;
    for (const samples of readings) {
      for (const sample of samples) {
        text += `\n${lineOf(name, sample)}`;
        if (++printed < printedAtOnce) continue;
        yield text;
        text = '';
        printed = 0;
        await turnOfItsOwn();
      }
    }
  }
  yield `${text}\n`;
}

/** Whether the registry adds nothing of its own to a line. Only a line that it prints tells that. */
async function printsPlainly(register: PrintedRegister & MetricPrinter): Promise<boolean> {
  if (!register.contentType.startsWith('text/plain')) return false;
  const probe = { name: 'probe', help: '', type: 'gauge', values: [{ value: 1 }] };
  return (await register.getMetricsAsString?.({ get: async () => probe }))?.endsWith('\nprobe 1') === true;
}

/** Of labels that several samples share. Weak: the text goes with its series. */
const texts = new WeakMap<Labels, string>();

function lineOf(name: string, { metricName = name, labels, sharedLabels, value }: Sample): string {
  const own = labels === undefined ? '' : print(labels);
  const shared =
    sharedLabels === undefined ? '' : (texts.get(sharedLabels) ?? put(texts, sharedLabels, print(sharedLabels)));
  const all = own === '' || shared === '' ? own + shared : `${own},${shared}`;
  return all === '' ? `${metricName} ${number(value)}` : `${metricName}{${all}} ${number(value)}`;
}

function print(labels: Labels): string {
  let text = '';
  for (const name in labels) {
    const value = labels[name]!.replace(/[\\\n"]/g, (special) => (special === '\n' ? '\\n' : `\\${special}`));
    text += `${text === '' ? '' : ','}${name}="${value}"`;
  }
  return text;
}

/** As prom-client has it, `Nan` included. */
function number(value: number): string {
  if (Number.isFinite(value)) return String(value);
  return Number.isNaN(value) ? 'Nan' : value < 0 ? '-Inf' : '+Inf';
}
