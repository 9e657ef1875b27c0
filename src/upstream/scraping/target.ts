/** One endpoint as the scraper sees it: where to ask, for what, and what came of it. */
import type { EndpointView } from '../../index.js';
import { ScrapeError } from '../asking.js';
import { ExpositionReader, lineFinder } from './exposition-reader.js';
import { LoadReading, type LoadSources, metricsOf } from './load-reading.js';

export class Target {
  readonly endpoint: EndpointView;
  /** The fault, when there is no URL to ask. */
  readonly url: string | ScrapeError;
  readonly candidates: readonly LoadSources[];
  /** Finds what the candidates want to hear of. */
  readonly finder: RegExp;
  /** The profile of the last good answer. */
  profile: string | undefined = undefined;
  /** Since the last good answer. */
  failures = 0;
  failingSinceMs = 0;
  lastError: ScrapeError | undefined = undefined;
  lastDurationMs: number | undefined = undefined;
  /** When it was asked last. */
  askedAtMs = 0;
  timer: unknown = undefined;
  /** While a scrape is under way. */
  underWay: AbortController | undefined = undefined;

  constructor(endpoint: EndpointView, url: string | ScrapeError, candidates: readonly LoadSources[]) {
    this.endpoint = endpoint;
    this.url = url;
    this.candidates = candidates;
    this.finder = lineFinder(candidates.flatMap(metricsOf));
  }

  /** True when the other one asks the same server for the same. */
  equals({ url, candidates }: Target): boolean {
    if (typeof url !== 'string' || url !== this.url) return false;
    return JSON.stringify(candidates) === JSON.stringify(this.candidates);
  }
}

/** One answer, taken for each engine that the endpoint may be. */
export class Answer {
  readonly exposition: ExpositionReader;
  private readonly readings: readonly LoadReading[];

  constructor({ candidates, finder }: Pick<Target, 'candidates' | 'finder'>) {
    this.readings = candidates.map((sources) => new LoadReading(sources));
    this.exposition = new ExpositionReader(finder, {
      declared: (metric) => this.readings.forEach((reading) => void reading.declared(metric)),
      sample: (...told) => this.readings.forEach((reading) => void reading.sample(...told)),
    });
  }

  /** @throws ScrapeError when it is none of them. */
  recognized(): LoadReading {
    const [only, ...others] = this.readings;
    const reading = this.readings.find(({ isRecognized }) => isRecognized) ?? (others.length === 0 ? only : undefined);
    if (reading !== undefined) return reading;
    const names = this.readings.map(({ sources }) => sources.name);
    throw new ScrapeError('no-metrics', `no metrics of ${names.join(', ')} in the answer`);
  }
}
