/** Several detectors as one: fullest or mean. Invariant: answers rise with readings; a failure reads as full. */
import { type ConfigIssue, FlowConfigError } from '../../../base/faults/flow-config-error.js';
import { type Definition, define } from '../../../base/policy-definition.js';
import * as s from '../../../base/schema/schema.js';
import type { EndpointView, PoolView, Stage } from '../../../endpoints/endpoint.js';
import { detectorIssue } from '../../read-detector.js';
import type { DetectorReading, DetectorReferences, SaturationDetector } from '../../saturation-detector.js';
import { NamedDetectors } from './named-detector.js';
import { fewestSeats, stagesOf } from './stage-aware.js';

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
  /** What each child read the last time; inside `byStage` for each stage. */
  readonly readings: readonly DetectorReading[];
}

/** `judges`: false for endpoints of other stages alone. */
type Child = CompositeChild & { readonly name: string; readonly judges: (endpoint: EndpointView) => boolean };

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
  combine: (readings: readonly number[]) => number,
): CompositeDetector {
  const children = readChildren(type, given);
  const detectors = children.map(({ detector }) => detector);
  const failures = new Map<string, unknown>();
  let winner: string | undefined;
  let told: DetectorReading[] = [];
  let toldAtMs = -Infinity;

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
    parts: children.map(({ detector, stages, judges }) => ({ plugin: detector, judges: stages && judges })),
    get winner() {
      return winner;
    },
    get failures() {
      return failures;
    },
    get readings() {
      return told;
    },
    get isGuessing() {
      return failures.size > 0 || detectors.some(({ isGuessing }) => isGuessing === true);
    },
    saturation(pool, nowMs) {
      failures.clear();
      winner = undefined;
      // The stages are judged one after the other, at one instant.
      told = nowMs === toldAtMs ? told.filter(({ stage }) => stage !== pool.stage) : [];
      toldAtMs = nowMs;
      let highest = -Infinity;
      const readings: number[] = [];
      for (const child of children) {
        if (pool.stage !== undefined && child.stages?.includes(pool.stage) === false) continue;
        const reading = read(child, pool, nowMs);
        readings.push(reading);
        told.push({ detector: child.name, stage: pool.stage, saturation: reading });
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
      seatsOf(endpoint: EndpointView, nowMs: number) {
        const judging = children.filter(({ judges }) => judges(endpoint)).map(({ detector }) => detector);
        return fewestSeats(judging, endpoint, nowMs);
      },
    }),
    filter(endpoints, nowMs) {
      return children.reduce((left, child) => filterBy(child, left, endpoints, nowMs), endpoints);
    },
  };
}

/** A child that fails is not blind: its fault is reported where it is read. */
function isBlind({ judges, detector }: Child, endpoint: EndpointView, nowMs: number): boolean {
  try {
    return judges(endpoint) && detector.isBlindTo?.(endpoint, nowMs) === true;
  } catch {
    return false;
  }
}

/** The part of `left` that the child keeps when it is asked about `all`; a child that fails keeps everything. */
function filterBy(
  { judges, detector }: Child,
  left: readonly EndpointView[],
  all: readonly EndpointView[],
  nowMs: number,
): readonly EndpointView[] {
  if (detector.filter === undefined) return left;
  try {
    const kept = new Set(detector.filter(all.filter(judges), nowMs));
    return left.filter((endpoint) => kept.has(endpoint) || !judges(endpoint));
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
    const isStage = (stage: Stage): boolean => stage === 'prefill' || stage === 'decode';
    const areStages = child.stages === undefined || (child.stages.length > 0 && child.stages.every(isStage));
    check(areStages, `${path}.stages`, expected, JSON.stringify(child.stages));
    const isNew = child.name === undefined || !names.has(child.name);
    check(isNew, `${path}.name`, 'a name that no other child has', JSON.stringify(child.name));
    const name = child.name ?? unusedName(child.detector?.type ?? '', names);
    names.add(name);
    const { detector, stages } = child;
    const judges = (endpoint: EndpointView): boolean =>
      stages === undefined || stagesOf(endpoint).some((stage) => stages.includes(stage));
    return { name, detector, stages, judges };
  });
  if (issues.length > 0) throw new FlowConfigError(type, issues);
  return children;
}

function unusedName(type: string, used: ReadonlySet<string>): string {
  let name = type;
  for (let number = 2; used.has(name); number++) name = `${type}-${number}`;
  return name;
}

/** How files have them. Children are names; the loader makes their detectors. */
const shape = {
  detectors: s.list(s.text('the name of a saturation detector'), 'an array of names, at least one entry'),
  /** Child → the stages that it judges; a child that is not in it judges both. */
  stages: s.optional(s.record(s.list(s.oneOf('prefill', 'decode')))),
};

const parameters = s.object(shape, checkNames);

function checkNames({ detectors, stages = {} }: s.Output<typeof shape>, report: s.Report): void {
  if (!Array.isArray(detectors)) return;
  if (detectors.length === 0) report('at least one entry', ['detectors']);
  detectors.forEach((name, index) => {
    if (detectors.indexOf(name) < index) report('a name that is not in the list yet', ['detectors', index]);
  });
  for (const [name, scope] of Object.entries(stages)) {
    if (!detectors.includes(name)) report('only names that are in detectors', ['stages', name], 'a name that is not');
    else if (scope?.length === 0) report('at least one entry', ['stages', name]);
  }
}

/* @__NO_SIDE_EFFECTS__ */ function definition(
  type: string,
  combine: (...children: CompositeChild[]) => CompositeDetector,
): Definition<SaturationDetector, DetectorReferences> {
  return define(type, parameters, ({ detectors, stages = {} }, references: DetectorReferences) => {
    const named = new NamedDetectors(references);
    const children = detectors.flatMap((name, index) => {
      const detector = named.find(name, `detectors[${index}]`);
      return detector === undefined ? [] : [{ name, detector, stages: stages[name] }];
    });
    if (children.length < detectors.length) throw named.toError(type);
    return combine(...children);
  });
}

export const maxOfPlugin: ReturnType<typeof definition> = definition('max-saturation-detector', maxOf);
export const meanOfPlugin: ReturnType<typeof definition> = definition('mean-saturation-detector', meanOf);
