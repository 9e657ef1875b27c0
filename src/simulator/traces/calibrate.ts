/**
 * Makes a model of the servers from measurements: how long a step takes, and what a sequence, a resident token and a
 * prompt token add to it. Least squares with coefficients from 0 up, each request weighing by what it tells relative to
 * its length.
 *
 *     decoding of one answer = tokens · (step + decode · batch + kv · resident tokens) + prefill · prompt tokens of others meanwhile
 */
import type { ContinuousBatchingOptions } from '../servers/continuous-batching.js';
import type { TraceRow } from './trace-row.js';

export interface CalibrateOptions {
  /** Servers that the requests were spread over, evenly. @default 1 */
  readonly servers?: number | undefined;
}

export interface Calibration {
  readonly model: Required<Pick<ContinuousBatchingOptions, 'stepMs' | 'decodeMs' | 'kvTokenMs' | 'prefillTokenMs'>>;
  /** Requests that the fit rests on. */
  readonly requests: number;
  /** Median of the relative error of the time between tokens, in the data that it was fitted to. */
  readonly medianError: number;
}

interface Answer {
  readonly fromMs: number;
  readonly toMs: number;
  readonly steps: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
}

/** Shorter answers tell more of noise than of the server. */
const fewestTokens = 4;
/** Requests with times that a fit needs at least. */
const fewestRequests = 20;

/** Undefined when too few rows have times: arrival, `ttftMs` and `totalMs`, and tokens. */
export function calibrate(rows: readonly TraceRow[], { servers = 1 }: CalibrateOptions = {}): Calibration | undefined {
  const answers = rows.flatMap(({ arrivalMs, ttftMs, totalMs, promptTokens = 0, outputTokens = 0 }): Answer[] =>
    ttftMs === undefined || totalMs === undefined || outputTokens < 1 || totalMs < ttftMs
      ? []
      : [
          {
            fromMs: arrivalMs + ttftMs,
            toMs: arrivalMs + totalMs,
            steps: outputTokens - 1,
            promptTokens,
            outputTokens,
          },
        ],
  );
  const long = answers.filter(({ steps, fromMs, toMs }) => steps + 1 >= fewestTokens && toMs > fromMs);
  if (long.length < fewestRequests) return undefined;
  const equations = long.map((answer) => equationOf(answer, answers, servers));
  const [stepMs = 0, decodeMs = 0, kvTokenMs = 0, prefillTokenMs = 0] = leastSquares(equations);
  const model = { stepMs: Math.max(stepMs, 0.01), decodeMs, kvTokenMs, prefillTokenMs };
  const errors = equations.map(({ terms, value }) => {
    const predicted = terms.reduce(
      (sum, term, index) => sum + term * ([stepMs, decodeMs, kvTokenMs, prefillTokenMs][index] ?? 0),
      0,
    );
    return Math.abs(predicted / value - 1);
  });
  errors.sort((a, b) => a - b);
  return { model, requests: long.length, medianError: errors[errors.length >> 1] ?? 0 };
}

interface Equation {
  readonly terms: readonly number[];
  readonly value: number;
  readonly weight: number;
}

/** The work at the server of an answer while it was written, on average over the servers. */
function equationOf(answer: Answer, answers: readonly Answer[], servers: number): Equation {
  const lengthMs = answer.toMs - answer.fromMs;
  let batchMs = 0;
  let residentMs = 0;
  let prefilled = 0;
  for (const other of answers) {
    const overlap = Math.min(answer.toMs, other.toMs) - Math.max(answer.fromMs, other.fromMs);
    const share = other === answer ? 1 : 1 / servers;
    if (overlap > 0) {
      batchMs += overlap * share;
      residentMs += overlap * share * (other.promptTokens + other.outputTokens / 2);
    }
    if (other !== answer && other.fromMs > answer.fromMs && other.fromMs <= answer.toMs)
      prefilled += other.promptTokens * share;
  }
  const { steps } = answer;
  return {
    terms: [steps, (steps * batchMs) / lengthMs, (steps * residentMs) / lengthMs, prefilled],
    value: lengthMs,
    weight: 1 / lengthMs,
  };
}

/** Coefficients from 0 up: those that would be negative are left out, the most negative first. */
function leastSquares(equations: readonly Equation[]): number[] {
  const size = equations[0]?.terms.length ?? 0;
  let active = Array.from({ length: size }, (_, index) => index);
  for (;;) {
    const solution = solve(equations, active);
    const worst = solution.reduce((least, value, index) => (value < (solution[least] ?? 0) ? index : least), 0);
    if ((solution[worst] ?? 0) >= 0 || active.length === 1) {
      const coefficients = Array.from({ length: size }, () => 0);
      for (const [place, index] of active.entries()) coefficients[index] = Math.max(0, solution[place] ?? 0);
      return coefficients;
    }
    active = active.filter((_, place) => place !== worst);
  }
}

/** The normal equations by Gauss and Jordan, scaled so that terms of different size are treated alike. */
function solve(equations: readonly Equation[], active: readonly number[]): number[] {
  const scale = active.map((index) =>
    Math.max(...equations.map(({ terms, weight }) => Math.abs((terms[index] ?? 0) * weight)), 1e-100),
  );
  const matrix = active.map((row, i) => [
    ...active.map((column, j) =>
      sum(
        equations,
        ({ terms, weight }) =>
          ((terms[row] ?? 0) * (terms[column] ?? 0) * weight * weight) / ((scale[i] ?? 1) * (scale[j] ?? 1)),
      ),
    ),
    sum(equations, ({ terms, value, weight }) => ((terms[row] ?? 0) * value * weight * weight) / (scale[i] ?? 1)),
  ]);
  const size = active.length;
  for (let pivot = 0; pivot < size; pivot++) {
    const row = matrix[pivot] as number[];
    // Terms that add nothing to the others get 0.
    const head = (row[pivot] ?? 0) + 1e-12 * equations.length;
    for (let column = pivot; column <= size; column++) row[column] = (row[column] ?? 0) / head;
    for (const [index, other] of matrix.entries()) {
      if (index === pivot) continue;
      const factor = other[pivot] ?? 0;
      for (let column = pivot; column <= size; column++)
        other[column] = (other[column] ?? 0) - factor * (row[column] ?? 0);
    }
  }
  return matrix.map((row, index) => (row[size] ?? 0) / (scale[index] ?? 1));
}

function sum(equations: readonly Equation[], of: (equation: Equation) => number): number {
  return equations.reduce((total, equation) => total + of(equation), 0);
}
