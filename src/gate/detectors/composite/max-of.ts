/** Several detectors as one: fullest or mean. Invariant: answers rise with readings; a failure reads as full. */
import { type ConfigIssue, FlowConfigError } from '../../../base/faults/flow-config-error.js';
import type { EndpointView, PoolView, Stage } from '../../../endpoints/endpoint.js';
import { detectorIssue } from '../../read-detector.js';
import type { SaturationDetector } from '../../saturation-detector.js';
import { fewestSeats } from './fewest-seats.js';
import { stagesOf } from './stage-aware.js';

/** A detector inside a composite. */
export interface CompositeChild {
  readonly detector: SaturationDetector;
  /** Its name in `winner` and `failures`. @default the detector's type, numbered when it comes twice */
  readonly name?: string | undefined;
  /** The stages that it judges when the composite is inside `byStage`. @default both */
  readonly stages?: readonly Stage[] | undefined;
}

export interface CompositeDetector extends SaturationDetector {
  readonly isGuessing: boolean;
  /** The child with the highest reading of the last time, the first of equals; undefined when none was in scope. */
  readonly winner: string | undefined;
  /** The error of each child that failed at the last reading, by name. */
  readonly failures: ReadonlyMap<string, unknown>;
}

interface Child {
  readonly name: string;
  readonly detector: SaturationDetector;
  readonly stages: readonly Stage[] | undefined;
}

type Combine = (readings: readonly number[]) => number;

/**
 * The highest reading of the children: any one that is full closes the gate. Costs what the children cost together.
 * A child that throws, or answers with anything but a finite number from 0 up, counts as full (1) and stands in
 * `failures`; the others are asked all the same. Children with `stages` are left out when another stage is judged; a
 * stage that no child judges reads 0. `filter` keeps the endpoints that every child with a filter keeps; a child whose
 * filter fails has no say. Differs from llm-d-router, whose composite offers no filter. Source: llm-d-router,
 * max-saturation-detector. @throws FlowConfigError
 */
export function maxOf(...children: readonly (SaturationDetector | CompositeChild)[]): CompositeDetector {
  return composite('max-saturation-detector', children, (readings) => Math.max(0, ...readings));
}

/**
 * The mean of the children's readings, with equal weights. The gate closes when the resources are full on average, so
 * an idle resource can hide one that overflows. Otherwise it is like `maxOf`. @throws FlowConfigError
 */
export function meanOf(...children: readonly (SaturationDetector | CompositeChild)[]): CompositeDetector {
  return composite('mean-saturation-detector', children, (readings) => {
    return readings.length === 0 ? 0 : readings.reduce((sum, reading) => sum + reading, 0) / readings.length;
  });
}

function composite(
  type: string,
  given: readonly (SaturationDetector | CompositeChild)[],
  combine: Combine,
): CompositeDetector {
  const children = readChildren(type, given);
  const detectors = children.map(({ detector }) => detector);
  const failures = new Map<string, unknown>();
  let winner: string | undefined;

  function read({ name, detector }: Child, pool: PoolView, nowMs: number): number {
    try {
      const reading = detector.saturation(pool, nowMs);
      if (typeof reading === 'number' && reading >= 0 && reading < Infinity) return reading;
      failures.set(name, new RangeError(`saturation must be a finite number from 0 up; got ${String(reading)}`));
    } catch (error) {
      failures.set(name, error);
    }
    return 1;
  }

  return {
    type,
    ...(detectors.some(({ needsPool }) => needsPool === true) ? { needsPool: true } : {}),
    parts: children.map((child) => ({
      plugin: child.detector,
      judges: child.stages && ((endpoint) => isJudgeOf(endpoint)(child)),
    })),
    get winner() {
      return winner;
    },
    get failures() {
      return failures;
    },
    get isGuessing() {
      return failures.size > 0 || detectors.some(({ isGuessing }) => isGuessing === true);
    },
    saturation(pool, nowMs) {
      failures.clear();
      winner = undefined;
      let highest = -Infinity;
      const readings: number[] = [];
      for (const child of children) {
        if (pool.stage !== undefined && child.stages?.includes(pool.stage) === false) continue;
        const reading = read(child, pool, nowMs);
        readings.push(reading);
        if (reading > highest) {
          highest = reading;
          winner = child.name;
        }
      }
      return combine(readings);
    },
    ...(detectors.some(({ isBlindTo }) => isBlindTo !== undefined) && {
      isBlindTo: (endpoint: EndpointView, nowMs: number) => children.some((child) => isBlind(child, endpoint, nowMs)),
    }),
    ...(detectors.some(({ seatsOf }) => seatsOf !== undefined) && {
      seatsOf: (endpoint: EndpointView, nowMs: number) =>
        fewestSeats(
          children.filter(isJudgeOf(endpoint)).map(({ detector }) => detector),
          endpoint,
          nowMs,
        ),
    }),
    filter(endpoints, nowMs) {
      return children.reduce((left, child) => filterBy(child, left, endpoints, nowMs), endpoints);
    },
  };
}

/** Whether a child judges a stage of the endpoint. */
function isJudgeOf(endpoint: EndpointView): (child: Child) => boolean {
  return ({ stages }) => stages === undefined || stagesOf(endpoint).some((stage) => stages.includes(stage));
}

/** A child that fails is not blind: its fault is reported where it is read. */
function isBlind(child: Child, endpoint: EndpointView, nowMs: number): boolean {
  try {
    return isJudgeOf(endpoint)(child) && child.detector.isBlindTo?.(endpoint, nowMs) === true;
  } catch {
    return false;
  }
}

/** The part of `left` that the child keeps when it is asked about `all`; a child that fails keeps everything. */
function filterBy(
  child: Child,
  left: readonly EndpointView[],
  all: readonly EndpointView[],
  nowMs: number,
): readonly EndpointView[] {
  const { detector } = child;
  if (detector.filter === undefined) return left;
  const isInScope = (endpoint: EndpointView): boolean => isJudgeOf(endpoint)(child);
  try {
    const kept = new Set(detector.filter(all.filter(isInScope), nowMs));
    return left.filter((endpoint) => kept.has(endpoint) || !isInScope(endpoint));
  } catch {
    return left;
  }
}

function readChildren(type: string, given: readonly (SaturationDetector | CompositeChild)[]): Child[] {
  const issues: ConfigIssue[] = [];
  const check = (isRight: boolean, path: string, expected: string, got: string): void => {
    if (!isRight) issues.push({ path, expected, got });
  };
  check(given.length > 0, 'detectors', 'at least one entry', 'none');
  const names = new Set<string>();
  const children = given.map((entry, index): Child => {
    const child: CompositeChild =
      typeof entry === 'object' && entry !== null && 'detector' in entry ? entry : { detector: entry };
    const path = `detectors[${index}]`;
    const issue = detectorIssue(path, child.detector);
    if (issue !== undefined) issues.push(issue);
    const expected = 'at least one of "prefill" and "decode"';
    check(areStages(child.stages), `${path}.stages`, expected, JSON.stringify(child.stages));
    const isNew = child.name === undefined || !names.has(child.name);
    check(isNew, `${path}.name`, 'a name that no other child has', JSON.stringify(child.name));
    const name = child.name ?? unusedName(child.detector?.type ?? '', names);
    names.add(name);
    return { name, detector: child.detector, stages: child.stages };
  });
  if (issues.length > 0) throw new FlowConfigError(type, issues);
  return children;
}

function areStages(given: readonly Stage[] | undefined): boolean {
  return given === undefined || (given.length > 0 && given.every((stage) => stage === 'prefill' || stage === 'decode'));
}

function unusedName(type: string, used: ReadonlySet<string>): string {
  let name = type;
  for (let number = 2; used.has(name); number++) name = `${type}-${number}`;
  return name;
}
