/**
 * Rates over time, as pieces that are straight lines, and the instants at which a given amount of traffic has come.
 *
 *     rate │   ╱‾‾╲__        arrivals are drawn at rate 1 and placed where the area under the line is as large
 *          └──────────► t
 */
import * as s from '../../base/schema/schema.js';
import type { Schema } from '../../index.js';
import { oneOfShapes, type Shapes } from '../schemas.js';

/** Requests per second. A number is a steady rate. */
export type Rate =
  | number
  /** From one rate to another, then steady. */
  | { readonly type: 'ramp'; readonly from: number; readonly to: number; readonly over: number }
  /** `high` for `on` ms, `low` for `off` ms, again and again. */
  | {
      readonly type: 'on-off';
      readonly high: number;
      readonly low?: number | undefined;
      readonly on: number;
      readonly off: number;
    }
  /** A day: from `low` to `high` and back once in each period, as a cosine has it. */
  | { readonly type: 'daily'; readonly low: number; readonly high: number; readonly period?: number | undefined }
  /** The rate changes at these times, ms from the start. */
  | { readonly type: 'steps'; readonly steps: readonly { readonly at: number; readonly rate: number }[] };

const dayMs = 86_400_000;

const type = s.anything();
const shapes: Shapes<Exclude<Rate, number>['type']> = {
  ramp: s.object({ type, from: s.atLeastZero(), to: s.atLeastZero(), over: s.durationAboveZero('10m') }),
  'on-off': s.object({
    type,
    high: s.atLeastZero(),
    low: s.optional(s.atLeastZero()),
    on: s.durationAboveZero('90s'),
    off: s.durationAboveZero('90s'),
  }),
  daily: s.object({
    type,
    low: s.atLeastZero(),
    high: s.atLeastZero(),
    period: s.optional(s.durationAboveZero('24h')),
  }),
  steps: s.object(
    { type, steps: s.list(s.object({ at: s.duration('0s'), rate: s.atLeastZero() })) },
    ({ steps }, report) => {
      if (steps.length === 0) report('at least one step', ['steps']);
      for (const [index, { at }] of steps.entries()) {
        if (index > 0 && !(at > (steps[index - 1]?.at ?? 0)))
          report('a time after that of the step before', ['steps', index, 'at']);
      }
    },
  ),
};

export function rate(): Schema<Rate> {
  return oneOfShapes<Rate>('type', shapes, 'requests per second', s.atLeastZero());
}

/** A straight piece: rates per ms at both ends. */
interface Piece {
  readonly lengthMs: number;
  readonly from: number;
  readonly to: number;
}

interface Profile {
  readonly pieces: readonly Piece[];
  /** After the last piece the first one follows; otherwise its last rate stays. */
  readonly repeats: boolean;
}

/** Pieces of a day: the error against the cosine is below a thousandth of its height. */
const piecesOfDay = 96;

/** The cosine of `part` of a full turn, by its Taylor series, which every engine computes alike. */
function cosineOfTurn(part: number): number {
  const x = (part > 0.5 ? 1 - part : part) * 2 * Math.PI;
  const isLeft = x > Math.PI / 2;
  const y = isLeft ? Math.PI - x : x;
  const s = y * y;
  const value = 1 - (s / 2) * (1 - (s / 12) * (1 - (s / 30) * (1 - (s / 56) * (1 - (s / 90) * (1 - s / 132)))));
  return isLeft ? -value : value;
}

function profileOf(given: Rate): Profile {
  const piece = (lengthMs: number, from: number, to = from): Piece => ({ lengthMs, from: from / 1000, to: to / 1000 });
  if (typeof given === 'number') return { pieces: [piece(1e12, given)], repeats: false };
  switch (given.type) {
    case 'ramp':
      return { pieces: [piece(given.over, given.from, given.to)], repeats: false };
    case 'on-off':
      return { pieces: [piece(given.on, given.high), piece(given.off, given.low ?? 0)], repeats: true };
    case 'daily': {
      const { low, high, period = dayMs } = given;
      const at = (index: number): number => low + ((high - low) * (1 - cosineOfTurn(index / piecesOfDay))) / 2;
      const pieces = Array.from({ length: piecesOfDay }, (_, i) => piece(period / piecesOfDay, at(i), at(i + 1)));
      return { pieces, repeats: true };
    }
    case 'steps': {
      const { steps } = given;
      const firstAt = steps[0]?.at ?? 0;
      const all = steps.map((step, index) => piece((steps[index + 1]?.at ?? step.at + 1e12) - step.at, step.rate));
      return { pieces: firstAt > 0 ? [piece(firstAt, 0), ...all] : all, repeats: false };
    }
  }
}

/** Walks along a profile. `advance(work)`: when `work` more requests have come, ms from the start, or Infinity. */
export class RateWalk {
  private readonly profile: Profile;
  private index = 0;
  private pieceBeganAtMs = 0;
  private withinMs = 0;

  constructor(given: Rate) {
    this.profile = profileOf(given);
  }

  advance(work: number): number {
    let left = work;
    for (let emptyPieces = 0; emptyPieces <= this.profile.pieces.length; ) {
      const { lengthMs, from, to } = this.piece();
      const slope = (to - from) / lengthMs;
      const here = from + slope * this.withinMs;
      const spanMs = lengthMs - this.withinMs;
      const area = here * spanMs + (slope * spanMs * spanMs) / 2;
      if (area >= left && area > 0) {
        this.withinMs +=
          slope === 0 ? left / here : (2 * left) / (here + Math.sqrt(Math.max(here * here + 2 * slope * left, 0)));
        return this.pieceBeganAtMs + this.withinMs;
      }
      left -= area;
      emptyPieces = area > 0 ? 0 : emptyPieces + 1;
      const { pieces, repeats } = this.profile;
      if (!repeats && this.index >= pieces.length) return Infinity;
      this.pieceBeganAtMs += lengthMs;
      this.withinMs = 0;
      this.index++;
    }
    return Infinity;
  }

  private piece(): Piece {
    const { pieces, repeats } = this.profile;
    if (repeats || this.index < pieces.length) return pieces[this.index % pieces.length] as Piece;
    const { to } = pieces[pieces.length - 1] as Piece;
    return { lengthMs: 1e12, from: to, to };
  }
}
