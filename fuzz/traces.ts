/** Recorded traffic: rows in the order of their arrival with finite figures, or an error that names the lines. */
import { FlowConfigError } from '../src/index.js';
import { readTrace } from '../src/simulator/traces/read-trace.js';
import { orName } from './inputs.js';

export function fuzz(input: Buffer): void {
  const options = { skipBadLines: (input[0] ?? 0) % 2 === 0 };
  const read = orName(
    () => readTrace(input.subarray(1).toString('utf8'), options),
    (error) => error instanceof FlowConfigError && error.issues.length > 0,
  );
  if (typeof read === 'string') return;
  let before = Number.NEGATIVE_INFINITY;
  for (const { arrivalMs, ...others } of read.rows) {
    if (!(arrivalMs >= before)) throw new Error(`a row of ${arrivalMs} ms comes after one of ${before} ms`);
    before = arrivalMs;
    for (const figure of Object.values(others))
      if (typeof figure === 'number' && !Number.isFinite(figure)) throw new Error(`a figure of ${figure}`);
  }
}
