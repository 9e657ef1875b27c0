/** Conditions on a result: `ttft.p99(premium) < 1s and completed(batch) >= 1000`. */
import { configError } from '../../base/faults/flow-config-error.js';
import { parseDuration } from '../../base/schema/duration.js';
import type { SimulationResult } from '../engine/result.js';
import { type Measure, parseMeasure } from './measure.js';

/** What must hold of a result. */
export interface Condition {
  readonly text: string;
  readonly measure: Measure;
  readonly threshold: number;
  /** The distance from the threshold, relative to it. The condition holds at 0 and below; NaN is infinitely far. */
  miss(figure: number): number;
}

/** The conditions of a text, joined by `and`. Times may have units; percents are ratios. @throws FlowConfigError */
export function parseConditions(text: string): Condition[] {
  return text.split(/\s+and\s+/).map(parseCondition);
}

/**
 * Adds that 95 % are served, in all and of each class or tenant that is named: times of a few say nothing of the
 * others. Conditions on `served` take their place.
 */
export function withServedDefault(conditions: readonly Condition[]): Condition[] {
  if (conditions.some(({ measure }) => measure.name === 'served')) return [...conditions];
  const named = new Set(conditions.map(({ measure }) => measure.who));
  const served = [...named.add(undefined)].map((who) => `served${who === undefined ? '' : `(${who})`} >= 95%`);
  return [...conditions, ...served.map(parseCondition)];
}

function parseCondition(text: string): Condition {
  const [, left = '', sign = '', right = ''] = /^(.+?)\s*(<=|>=|<|>)\s*(\S+)$/.exec(text.trim()) ?? [];
  const threshold = figure(right);
  if (sign === '' || Number.isNaN(threshold))
    throw configError('--so-that', '', 'a comparison such as ttft.p99(premium) < 1s', JSON.stringify(text));
  const scale = Math.abs(threshold) > 0 ? Math.abs(threshold) : 1;
  const isStrict = sign.length === 1;
  return {
    text: text.trim(),
    measure: parseMeasure(left),
    threshold,
    miss(found) {
      if (Number.isNaN(found)) return Infinity;
      const difference = (sign.startsWith('<') ? found - threshold : threshold - found) / scale;
      return isStrict && difference === 0 ? Number.MIN_VALUE : difference;
    },
  };
}

function figure(text: string): number {
  if (/^-?[\d.]+%$/.test(text)) return Number(text.slice(0, -1)) / 100;
  return /^-?[\d.]+$/.test(text) ? Number(text) : parseDuration(text);
}

/** The largest miss over all results and conditions; at 0 and below all of them hold. */
export function worstMiss(conditions: readonly Condition[], results: readonly SimulationResult[]): number {
  return Math.max(...results.flatMap((result) => conditions.map(({ measure, miss }) => miss(measure.read(result)))));
}

/** The measures of conditions that some result breaks, and which of them have no figure. */
export function failuresOf(conditions: readonly Condition[], results: readonly SimulationResult[]): string[] {
  return conditions.flatMap(({ measure, miss }) => {
    const figures = results.map((result) => measure.read(result));
    if (figures.some(Number.isNaN)) return [`${measure.text} of nobody`];
    return figures.some((found) => miss(found) > 0) ? [measure.text] : [];
  });
}
