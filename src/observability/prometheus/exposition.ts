/**
 * What a registry prints, in parts, so that a scrape of many series does not hold the event loop. prom-client prints a
 * metric at once; here it prints some samples of headgate's metrics at a time.
 *
 * Invariant: the parts together are what `register.metrics()` answers. No part has more than 500 samples of headgate.
 */
import { printedAtOnce, type RegisteredMetric, type Sample, ScrapedMetric, turnOfItsOwn } from './scraped-metric.js';

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
  const print = await plainPrinter(register);
  if (print === undefined) {
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
    const head = await print({ name, help, type });
    text += head;
    let values: Sample[] = [];
    for (const samples of readings) {
      for (const sample of samples) {
        values.push(sample);
        if (++printed < printedAtOnce) continue;
        yield text + (await print({ name, help, type, values })).slice(head.length);
        text = '';
        values = [];
        printed = 0;
        await turnOfItsOwn();
      }
    }
    text += (await print({ name, help, type, values })).slice(head.length);
  }
  yield `${text}\n`;
}

/** Undefined where the registry adds something of its own to a line. Only a line that it prints tells that. */
async function plainPrinter(
  register: PrintedRegister & MetricPrinter,
): Promise<((metric: object) => Promise<string>) | undefined> {
  if (!register.contentType.startsWith('text/plain')) return undefined;
  const print = async (metric: object): Promise<string> =>
    (await register.getMetricsAsString?.({ get: async () => metric })) ?? '';
  const probe = { name: 'probe', help: '', type: 'gauge', values: [{ value: 1 }] };
  return (await print(probe)).endsWith('\nprobe 1') ? print : undefined;
}
