// @ts-check
// What docs/capacity.md says of predicted and measured times, from a record of requests: the first half of it
// calibrates a model of the servers, and the second half is simulated from its arrivals alone.

import { calibrate, heldAgainstLog, loadScenario, simulate } from 'headgate/simulator';
import { defaultEngine } from './engine.mjs';

/** Seats of each server. */
export const maxConcurrency = 16;
export const gate = {
  plugins: [{ type: 'concurrency-detector', parameters: { maxConcurrency } }],
  saturationDetector: { pluginRef: 'concurrency-detector' },
};

/** What the engine of the demo really goes by. @type {Record<string, number>} */
const trueValues = {
  stepMs: defaultEngine.stepMs,
  decodeMs: defaultEngine.decodeSeqMs,
  kvTokenMs: defaultEngine.kvTokenMs,
  prefillTokenMs: defaultEngine.prefillTokenMs,
  overheadMs: 0,
};

/**
 * The lines of the page.
 * @param {readonly import('headgate/simulator').TraceRow[]} rows
 * @param {{ rate: number, seconds: number, servers: number, date: string }} run
 */
export function capacityReport(rows, { rate, seconds, servers, date }) {
  const half = (rows.at(-1)?.arrivalMs ?? 0) / 2;
  const calibration = calibrate(
    rows.filter(({ arrivalMs }) => arrivalMs < half),
    { servers },
  );
  if (calibration === undefined) throw new Error('too few requests to calibrate by');
  const { model, requests } = calibration;
  // What the operator knows of the engine; its times come from the log alone.
  const { kvBlocks, blockTokens, maxNumSeqs, maxBatchedTokens } = defaultEngine;
  const known = { kvTokens: kvBlocks * blockTokens, blockTokens, maxSequences: maxNumSeqs, maxBatchedTokens };
  const plan = {
    duration: (rows.at(-1)?.arrivalMs ?? 0) + 1,
    warmUp: half,
    servers: [{ name: 'server', count: servers, model: 'continuous-batching', ...known, ...model }],
    ...gate,
  };
  const result = simulate(loadScenario(plan, { rows }).options);
  const times = heldAgainstLog(result, rows).map(({ name, measuredMs, predictedMs, error }) => {
    const most = name.endsWith('p50') ? 0.15 : 0.25;
    const off = `${(error * 100).toFixed(0)} %${Math.abs(error) <= most ? '' : ' (**more**)'}`;
    return `| ${name} | ${predictedMs.toFixed(1)} ms | ${measuredMs.toFixed(1)} ms | ${off} |`;
  });
  const fitted = Object.entries(model).map(
    ([name, value]) => `\`${name}\` ${value.toPrecision(3)} (engine: ${trueValues[name]})`,
  );
  return [
    `${rate} requests a second for ${seconds} s on ${servers} servers, ${maxConcurrency} seats each; ${date}.`,
    `Calibrated by ${requests} requests: ${fitted.join(', ')}.`,
    `${result.all.arrived} requests predicted.`,
    '',
    '| | predicted | measured | off by |',
    '|---|---|---|---|',
    ...times,
    '',
  ].join('\n');
}
