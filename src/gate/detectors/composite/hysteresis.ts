/**
 * A detector that changes its answer late, and not too often: full from one level up, free again from a lower level
 * down. Invariant: `minDwellMs` at least lie between two flips, so that there are at most `T / minDwellMs + 1` of them
 * in any T ms.
 */
import { FlowConfigError } from '../../../base/faults/flow-config-error.js';
import { type Definition, define } from '../../../base/policy-definition.js';
import { opensBelowClosing } from '../../../base/schema/cross-field-rules.js';
import * as s from '../../../base/schema/schema.js';
import { detectorIssue } from '../../read-detector.js';
import type { DetectorReferences, SaturationDetector } from '../../saturation-detector.js';
import { NamedDetectors } from './named-detector.js';

export interface HysteresisOptions {
  /** The reading from which on it is full, above 0. @default 1 */
  closeAt?: number | undefined;
  /** The reading down to which it stays full, from 0 to `closeAt`. @default 0.9 · closeAt */
  openAt?: number | undefined;
  /** How long it stays full, or free, at least; ms. @default 0 */
  minDwellMs?: number | undefined;
}

const shape = {
  closeAt: s.optional(s.aboveZero(), 1),
  openAt: s.optional(s.atLeastZero()),
  minDwellMs: s.optional(s.atLeastZero(), 0),
};

const optionsSchema = s.object(shape, opensBelowClosing);

const type = 'hysteresis-saturation-detector';
/** The largest number below 1. */
const justBelowFull = 0.9999999999999999;

export interface HysteresisDetector<D extends SaturationDetector = SaturationDetector> extends SaturationDetector {
  /** The detector inside. */
  readonly inner: D;
  readonly isClosed: boolean;
  /** How often it changed its answer; it begins free. */
  readonly flips: number;
  /** True while it reads full only because `minDwellMs` has not passed: the gate must then look again by a timer. */
  readonly isGuessing: boolean;
}

/**
 * The readings of `detector` over `closeAt`, and at least 1 from when they reach 1 until they have fallen to
 * `openAt / closeAt`; below 1 otherwise. A change that comes before `minDwellMs` have passed since the last one waits,
 * and what is free then lets requests pass whatever the reading. O(1). A reading that is no number changes nothing and
 * is passed on, for the gate to judge. The gate has `closeAt` and `openAt` of its own, for all it reads; this one is
 * for a detector inside a composite, and for dwelling. It judges one pool: inside `byStage`, make one for each stage.
 * @throws FlowConfigError
 */
export function withHysteresis<D extends SaturationDetector>(
  detector: D,
  options: HysteresisOptions = {},
): HysteresisDetector<D> {
  const { closeAt, openAt = 0.9 * closeAt, minDwellMs } = s.parse(optionsSchema, options, 'withHysteresis');
  const issue = detectorIssue('detector', detector);
  if (issue !== undefined) throw new FlowConfigError('withHysteresis', [issue]);
  const { filter, isBlindTo, seatsOf } = detector;
  let isClosed = false;
  let isHeldClosed = false;
  let flips = 0;
  let flippedAtMs = -Infinity;

  function settle(reading: number, nowMs: number): void {
    const isFull = reading >= closeAt;
    const wantsToFlip = isClosed ? reading <= openAt && !isFull : isFull;
    const mayFlip = nowMs - flippedAtMs >= minDwellMs;
    isHeldClosed = isClosed && wantsToFlip && !mayFlip;
    if (!wantsToFlip || !mayFlip) return;
    isClosed = !isClosed;
    flips++;
    flippedAtMs = nowMs;
  }

  return {
    type,
    inner: detector,
    ...(detector.needsPool === true ? { needsPool: true } : {}),
    parts: [{ plugin: detector }],
    get isClosed() {
      return isClosed;
    },
    get flips() {
      return flips;
    },
    get isGuessing() {
      return isHeldClosed || detector.isGuessing === true;
    },
    saturation(pool, nowMs) {
      const reading = detector.saturation(pool, nowMs);
      if (!Number.isFinite(reading)) return reading;
      settle(reading, nowMs);
      return isClosed ? Math.max(reading / closeAt, 1) : Math.min(reading / closeAt, justBelowFull);
    },
    ...(filter && { filter: filter.bind(detector) }),
    ...(isBlindTo && { isBlindTo: isBlindTo.bind(detector) }),
    ...(seatsOf && { seatsOf: seatsOf.bind(detector) }),
  };
}

const parameters = s.object(
  s.withKeys({ detector: s.text('the name of a saturation detector') }, shape),
  opensBelowClosing,
);

export const hysteresisPlugin: Definition<SaturationDetector, DetectorReferences> = define(
  type,
  parameters,
  ({ detector, ...options }, references: DetectorReferences) => {
    const named = new NamedDetectors(references);
    const inner = named.find(detector, 'detector');
    if (inner === undefined) throw named.toError(type);
    return withHysteresis(inner, options);
  },
);
