/**
 * Looks for the values for which a condition holds: a coarse grid first, then bisection at both ends of the longest
 * range of it in which every value holds.
 *
 *     infeasible │ feasible … feasible │ infeasible
 *                ▲ least               ▲ greatest
 *
 * Invariant: no value that was tried in the range told fails. Others that hold, beyond one that fails, are ranges of
 * their own.
 */
import { put } from '../../base/put.js';

export interface FindOptions {
  readonly from: number;
  readonly to: number;
  /** Try integers only. */
  readonly isInteger: boolean;
  /** How far the value misses, relative to the condition; it holds at 0 and below. One simulation per seed. */
  miss(value: number): number;
}

export interface TriedValue {
  readonly value: number;
  readonly miss: number;
}

/** Both ends hold, and every value between them that was tried. */
export interface ValueRange {
  readonly least: number;
  readonly greatest: number;
}

export interface FoundValues {
  /** Of the longest range. Undefined: no value that was tried makes the condition hold. */
  readonly least: number | undefined;
  readonly greatest: number | undefined;
  /** The other ranges, whose ends are as far apart from what fails as they were tried. */
  readonly others: readonly ValueRange[];
  /** The value that came closest. */
  readonly closest: TriedValue;
  /** Every value that was tried, in order. */
  readonly curve: readonly TriedValue[];
}

const gridPoints = 9;
/** Values that are not integers are found to this part of themselves. */
const precision = 0.01;
/** Refinements around the closest value, when the grid has found none. */
const refinements = 8;

/** Tries a grid between `from` and `to`, closer if none holds; narrows to neighbours or 1 %. */
export function findValue({ from, to, isInteger, miss }: FindOptions): FoundValues {
  const known = new Map<number, TriedValue>();
  const attempt = (given: number): TriedValue => {
    const value = isInteger ? Math.round(given) : given;
    return known.get(value) ?? put(known, value, { value, miss: miss(value) });
  };
  const curve = (): TriedValue[] => [...known.values()].sort((a, b) => a.value - b.value);
  /** A value between two, in any order, if they are not neighbours. */
  const between = (one: number, other: number): number | undefined => {
    const [a, b] = [Math.min(one, other), Math.max(one, other)];
    if (b - a <= (isInteger ? 1 : Math.abs(b) * precision)) return undefined;
    return a > 0 && b > 4 * a ? Math.sqrt(a * b) : (a + b) / 2;
  };

  for (let point = 0; point < gridPoints; point++) attempt(gridValue(from, to, point / (gridPoints - 1)));
  let all = curve();
  // If no value of the grid will do, a narrow range may lie beside the value that came closest.
  for (let round = 0; round < refinements && all.every((tried) => !(tried.miss <= 0)); round++) {
    const best = all.reduce((index, tried, at) => (tried.miss < (all[index] as TriedValue).miss ? at : index), 0);
    const here = all[best] as TriedValue;
    for (const other of [all[best - 1], all[best + 1]]) {
      const value = other && between(here.value, other.value);
      if (value !== undefined) attempt(value);
    }
    if (curve().length === all.length) break;
    all = curve();
  }
  const closest = all.reduce((best, candidate) => (candidate.miss < best.miss ? candidate : best));
  const [longest] = rangesOf(all).sort((a, b) => b.to - b.from - (a.to - a.from));
  if (longest === undefined) return { least: undefined, greatest: undefined, others: [], closest, curve: all };
  const bisect = (outside: TriedValue | undefined, inside: TriedValue): number => {
    if (outside === undefined) return inside.value;
    let [out, within] = [outside.value, inside.value];
    for (let value = between(out, within); value !== undefined; value = between(out, within)) {
      const next = attempt(value);
      if (next.value === out || next.value === within) break;
      if (next.miss <= 0) within = next.value;
      else out = next.value;
    }
    return within;
  };
  const least = bisect(all[longest.from - 1], all[longest.from] as TriedValue);
  const greatest = bisect(all[longest.to + 1], all[longest.to] as TriedValue);
  const tried = curve();
  const others = rangesOf(tried).flatMap(({ from: first, to: last }) => {
    const range = { least: tried[first]?.value ?? least, greatest: tried[last]?.value ?? greatest };
    return range.least === least ? [] : [range];
  });
  return { least, greatest, others, closest, curve: tried };
}

/** The indices of the first and the last value of each range in which every value holds. */
function rangesOf(curve: readonly TriedValue[]): { from: number; to: number }[] {
  const ranges: { from: number; to: number }[] = [];
  for (const [index, { miss }] of curve.entries()) {
    const last = ranges.at(-1);
    if (!(miss <= 0)) continue;
    if (last?.to === index - 1) last.to = index;
    else ranges.push({ from: index, to: index });
  }
  return ranges;
}

/** Evenly by ratio where the range spans much, otherwise evenly. */
function gridValue(from: number, to: number, part: number): number {
  return from > 0 && to > 4 * from
    ? Math.exp(Math.log(from) + (Math.log(to) - Math.log(from)) * part)
    : from + (to - from) * part;
}
