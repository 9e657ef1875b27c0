/**
 * Makes a model of the servers from measurements: how long a step takes, what a sequence, a resident token and a prompt
 * token add to it, and how long a request is on its way to the batch. Two equations for each answer:
 *
 *     further tokens = tokens · (step + decode · batch + kv · resident tokens) + prefill · prompt tokens of others
 *     first token = steps · (step + decode · batch + kv · resident tokens) + prefill · prompt tokens + overhead
 *
 * Further tokens alone do not tell what a prompt costs where answers seldom overlap, and never the overhead.
 */
import { put } from '../../base/put.js';
import * as s from '../../base/schema/schema.js';
import { checkArguments } from '../schemas.js';
import { continuousBatchingDefaults } from '../servers/continuous-batching.js';
import { type Equation, leastMisses, relativeMiss } from './least-misses.js';
import { courseOf, LoadCourse } from './load-course.js';
import { someRows, type TraceRow } from './trace-row.js';

export interface CalibrateOptions {
  /** Servers that the requests were spread over, evenly. @default those that the rows name, or 1 */
  readonly servers?: number | undefined;
}

export interface Calibration {
  readonly model: Readonly<Record<'stepMs' | 'decodeMs' | 'kvTokenMs' | 'prefillTokenMs' | 'overheadMs', number>>;
  /** Requests that the fit rests on. */
  readonly requests: number;
  /** Median of the relative error of the time between tokens, in the data that it was fitted to. */
  readonly medianError: number;
}

interface Answer {
  readonly server: string | undefined;
  readonly acceptedAtMs: number;
  /** From its first token to its last. */
  readonly fromMs: number;
  readonly toMs: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
}

/** Shorter answers tell more of noise than of the server. */
const fewestTokens = 4;
/** Requests with times that a fit needs at least. */
const fewestRequests = 20;
/** More requests would not make the fit better; these are taken evenly from all. */
const mostRequests = 2000;
/** The interval in which an answer's prompt was computed depends on the overhead: it is found again so often. */
const rounds = 4;

/** Undefined when too few rows have arrival, `ttftMs`, `totalMs` and tokens. O(n log n). @throws FlowConfigError */
export function calibrate(rows: readonly TraceRow[], options: CalibrateOptions = {}): Calibration | undefined {
  const ofOptions = s.object({ servers: s.optional(s.positiveInteger()) });
  checkArguments('calibrate', { rows, options }, { rows: someRows, options: ofOptions });
  const { servers = serversOf(rows) } = options;
  const answers = rows.flatMap(answerOf);
  const long = answers.filter(({ outputTokens, fromMs, toMs }) => outputTokens >= fewestTokens && toMs > fromMs);
  if (long.length < fewestRequests) return undefined;
  const pace = Math.max(1, long.length / mostRequests);
  const fitted = long.filter((_, index) => Math.floor(index / pace) > Math.floor((index - 1) / pace));
  const workAt = worksOf(answers, servers);
  const further = fitted.map((answer) => workAt(answer).ofFurtherTokens(answer));
  let coefficients: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const overheadMs = coefficients[4] ?? 0;
    const first = fitted.flatMap((answer) => workAt(answer).ofFirstToken(answer, overheadMs));
    coefficients = leastMisses([...further, ...first]);
  }
  const [stepMs = 0, decodeMs = 0, kvTokenMs = 0, prefillTokenMs = 0, overheadMs = 0] = coefficients;
  const errors = further.map((equation) => Math.abs(relativeMiss(equation, coefficients))).sort((a, b) => a - b);
  return {
    model: { stepMs: Math.max(stepMs, 0.01), decodeMs, kvTokenMs, prefillTokenMs, overheadMs },
    requests: long.length,
    medianError: errors[errors.length >> 1] ?? 0,
  };
}

export function serversOf(rows: readonly TraceRow[]): number {
  return Math.max(1, new Set(rows.flatMap(({ server }) => server ?? [])).size);
}

function answerOf(row: TraceRow): Answer[] {
  const { arrivalMs, server, queuedMs = 0, ttftMs, totalMs, promptTokens = 0, outputTokens = 0 } = row;
  if (ttftMs === undefined || totalMs === undefined || outputTokens < 1 || totalMs < ttftMs) return [];
  const [fromMs, toMs] = [arrivalMs + ttftMs, arrivalMs + totalMs];
  return [{ server, acceptedAtMs: arrivalMs + Math.min(queuedMs, ttftMs), fromMs, toMs, promptTokens, outputTokens }];
}

/** The work at the server of an answer: its own, where all tell their server, and otherwise a share of all. */
function worksOf(answers: readonly Answer[], servers: number): (answer: Answer) => Work {
  const all = new Work(answers, servers);
  if (answers.some(({ server }) => server === undefined)) return () => all;
  const byServer = new Map<string | undefined, Answer[]>();
  for (const answer of answers) {
    (byServer.get(answer.server) ?? put(byServer, answer.server, [])).push(answer);
  }
  const works = new Map([...byServer].map(([server, own]) => [server, new Work(own, 1)]));
  return ({ server }) => works.get(server) ?? all;
}

/** The work at a server while an answer was made. Its terms go with the four times of a step, and the overhead. */
class Work {
  private readonly batch: LoadCourse;
  private readonly resident: LoadCourse;
  /** All prompt tokens that were computed so far. */
  private readonly prompts: LoadCourse;
  /** The part of the others that is at the server of an answer. */
  private readonly share: number;

  constructor(answers: readonly Answer[], servers: number) {
    this.share = 1 / servers;
    this.batch = courseOf(answers.map(({ fromMs, toMs }) => ({ fromMs, toMs, amount: 1 })));
    this.resident = courseOf(answers.map((answer) => ({ ...answer, amount: residentTokens(answer) })));
    this.prompts = new LoadCourse(answers.map(({ fromMs, promptTokens }) => ({ atMs: fromMs, by: promptTokens })));
  }

  ofFurtherTokens(answer: Answer): Equation {
    const { fromMs, toMs, outputTokens } = answer;
    const steps = outputTokens - 1;
    const own = 1 - this.share;
    const batch = this.batch.mean(fromMs, toMs) * this.share + own;
    const resident = this.resident.mean(fromMs, toMs) * this.share + own * residentTokens(answer);
    const prefilled = this.prompts.gained(fromMs, toMs) * this.share;
    return { terms: [steps, steps * batch, steps * resident, prefilled, 0], value: toMs - fromMs };
  }

  /** It waits for half of the step that is under way, if there is one, and then for those of its prompt. */
  ofFirstToken({ acceptedAtMs, fromMs, promptTokens }: Answer, overheadMs: number): Equation[] {
    if (fromMs <= acceptedAtMs) return [];
    const beginsAtMs = Math.min(acceptedAtMs + overheadMs, fromMs - shortestMs);
    const batch = this.batch.mean(beginsAtMs, fromMs) * this.share;
    const resident = this.resident.mean(beginsAtMs, fromMs) * this.share;
    const ofOthers = Math.max(0, this.prompts.gained(beginsAtMs, fromMs) - promptTokens) * this.share;
    const steps =
      Math.ceil(Math.max(1, promptTokens) / continuousBatchingDefaults.maxBatchedTokens) + Math.min(1, batch) / 2;
    const terms = [steps, steps * batch, steps * resident, promptTokens + ofOthers, 1];
    return [{ terms, value: fromMs - acceptedAtMs }];
  }
}

/** No first token is shorter under way, ms. */
const shortestMs = 1e-3;

/** In the middle of its answer. */
function residentTokens({ promptTokens, outputTokens }: Answer): number {
  return promptTokens + outputTokens / 2;
}
