/** A scraper whose servers answer when the test says so, on a clock that moves only when told to. */
import { concurrencyDetector, FlowController, type SaturationDetector } from '../../../src/index.js';
import { ManualClock } from '../../../src/testing/index.js';
import {
  EndpointPool,
  type MetricsFetch,
  type MetricsResponse,
  type ScrapeOptions,
  type Scraper,
  scrape,
} from '../../../src/upstream/index.js';
import { vllm } from './expositions.js';

/** Promises settle, the clock stands still. */
export const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

export interface Question {
  readonly atMs: number;
  readonly url: string;
  readonly signal: AbortSignal;
  answer(text?: string): Promise<void>;
  fail(): Promise<void>;
}

export interface Rig {
  readonly clock: ManualClock;
  readonly pool: EndpointPool;
  readonly flow: FlowController;
  readonly scraper: Scraper;
  readonly questions: Question[];
  last(): Question;
  /** When each question was asked. */
  instants(): number[];
}

/** A pool of `count` servers that answer when the test says so, and its controller. */
export function makeRig(
  count: number,
  options: ScrapeOptions = {},
  saturationDetector: SaturationDetector = concurrencyDetector({ maxConcurrency: 100 }),
): Rig {
  const clock = new ManualClock();
  const pool = new EndpointPool();
  const flow = new FlowController({ pool, clock, saturationDetector });
  for (let i = 0; i < count; i++) pool.add(`e${i}`);
  const questions: Question[] = [];
  const fetch: MetricsFetch = (url, { signal }) =>
    new Promise<MetricsResponse>((resolve, reject) => {
      questions.push({
        atMs: clock.now(),
        url,
        signal,
        answer: (text = vllm()) => {
          resolve(new Response(text));
          return settled();
        },
        fail: () => {
          reject(new Error('refused'));
          return settled();
        },
      });
    });
  const scraper = scrape(pool, { clock, fetch, jitter: 0, ...options });
  const last = (): Question => questions.at(-1)!;
  return { clock, pool, flow, scraper, questions, last, instants: () => questions.map(({ atMs }) => atMs) };
}
