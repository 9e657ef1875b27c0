/** The fuller of the prefill and decode stages decides. Invariant: endpoints of both count twice, of neither never. */
import { FlowConfigError } from '../../../base/faults/flow-config-error.js';
import { type Definition, define } from '../../../base/policy-definition.js';
import * as s from '../../../base/schema/schema.js';
import type { EndpointView, PoolView, Stage } from '../../../endpoints/endpoint.js';
import { detectorIssue } from '../../read-detector.js';
import type { DetectorReferences, SaturationDetector } from '../../saturation-detector.js';
import { VisiblePart } from '../../visible-part.js';
import { NamedDetectors } from './named-detector.js';

/** The label that names an endpoint's part. */
export const roleLabel = 'llm-d.ai/role';

const type = 'stage-aware-saturation-detector';

const stages: readonly Stage[] = ['prefill', 'decode'];
const prefillOnly: readonly Stage[] = ['prefill'];
const decodeOnly: readonly Stage[] = ['decode'];
const neither: readonly Stage[] = [];

/** The stages that an endpoint serves: by its label, decode without one, none for a role that is neither. */
export function stagesOf({ labels }: Pick<EndpointView, 'labels'>): readonly Stage[] {
  switch (labels[roleLabel] ?? '') {
    case 'prefill':
    case 'encode-prefill':
      return prefillOnly;
    case 'decode':
    case '':
      return decodeOnly;
    case 'prefill-decode':
    case 'both':
    case 'encode-prefill-decode':
      return stages;
    default:
      return neither;
  }
}

/** Endpoints by stage, in the order given. O(endpoints). Source: llm-d-router, the dispatch cycle's stages. */
export function partitionByRole(endpoints: readonly EndpointView[]): Readonly<Record<Stage, readonly EndpointView[]>> {
  const servingOf = (stage: Stage): readonly EndpointView[] =>
    endpoints.filter((endpoint) => stagesOf(endpoint).includes(stage));
  return { prefill: servingOf('prefill'), decode: servingOf('decode') };
}

/** The endpoints of one stage as a pool. */
type StagePool = VisiblePart & { readonly stage: Stage };

/** One detector for each stage. */
export interface StageDetectors {
  prefill: SaturationDetector;
  decode: SaturationDetector;
}

/** A detector that also tells the last reading of each stage. */
export interface StageAwareDetector extends SaturationDetector {
  /** The last reading of each stage; a stage without endpoints has none. */
  readonly stageSaturation: Readonly<Partial<Record<Stage, number>>>;
}

/**
 * Judges the prefill and the decode endpoints apart, with one detector for both stages or one for each, and answers
 * with the fuller stage. A stage without endpoints is not judged; when both are, the whole pool is judged at once, by
 * the detector of the decode stage. The pool that a detector sees carries its `stage`. Endpoints are sorted into stages
 * when the members of the pool or their labels change, not at each reading; each reading costs what the detectors cost,
 * and their sums over in-flight work are O(endpoints). `filter` keeps what the detectors of all the stages of an
 * endpoint keep. An endpoint that one of them is blind to is no capacity, and a stage of such endpoints alone is full.
 * Source: llm-d-router, the dispatch cycle's stages. @throws FlowConfigError
 */
export function byStage(detectors: SaturationDetector | StageDetectors): StageAwareDetector {
  const { prefill, decode } = 'saturation' in detectors ? { prefill: detectors, decode: detectors } : detectors;
  const children = { prefill, decode };
  const issues = stages.flatMap((stage) => detectorIssue(stage, children[stage]) ?? []);
  if (issues.length > 0) throw new FlowConfigError('byStage', issues);
  const distinct = [...new Set([prefill, decode])];
  const poolsOf = stagePools();
  let stageSaturation: Partial<Record<Stage, number>> = {};
  /** The instant at which an endpoint of the stage was last found that its detector is blind to. */
  const blindAtMs: Partial<Record<Stage, number>> = {};

  /** The detectors that count this endpoint; all of them where no stage does. */
  function judgesOf(endpoint: EndpointView): readonly SaturationDetector[] {
    const serving = stagesOf(endpoint);
    return serving.length === 1 ? [children[serving[0] as Stage]] : distinct;
  }

  return {
    type,
    ...(distinct.some((child) => child.needsPool === true) ? { needsPool: true } : {}),
    parts: distinct.map((plugin) => ({ plugin, judges: (endpoint) => judgesOf(endpoint).includes(plugin) })),
    get isGuessing() {
      return distinct.some((child) => child.isGuessing === true);
    },
    get stageSaturation() {
      return stageSaturation;
    },
    saturation(pool, nowMs) {
      stageSaturation = {};
      const parts = poolsOf(pool);
      // Stages that have endpoints, but none that its detector can see at this reading.
      const dark = stages.filter((stage) => blindAtMs[stage] === nowMs && !parts.some((part) => part.stage === stage));
      for (const stage of dark) stageSaturation[stage] = 1;
      let fullest = dark.length > 0 ? 1 : 0;
      if (parts.length === 0) return Math.max(fullest, decode.saturation(pool, nowMs));
      for (const part of parts) {
        const reading = children[part.stage].saturation(part, nowMs);
        stageSaturation[part.stage] = reading;
        // Math.max alone would not do, because a reading that is no number must reach the gate.
        fullest = typeof reading === 'number' ? Math.max(fullest, reading) : NaN;
      }
      return fullest;
    },
    filter(endpoints, nowMs) {
      const partition = partitionByRole(endpoints);
      if (partition.prefill.length + partition.decode.length === 0) return endpoints;
      const full = new Set<EndpointView>();
      for (const stage of stages) {
        if (partition[stage].length === 0) continue;
        const kept = new Set(children[stage].filter?.(partition[stage], nowMs) ?? partition[stage]);
        for (const endpoint of partition[stage]) if (!kept.has(endpoint)) full.add(endpoint);
      }
      return endpoints.filter((endpoint) => stagesOf(endpoint).length > 0 && !full.has(endpoint));
    },
    ...(distinct.some(({ isBlindTo }) => isBlindTo !== undefined) && {
      isBlindTo(endpoint: EndpointView, nowMs: number) {
        const isBlind = judgesOf(endpoint).some((judge) => judge.isBlindTo?.(endpoint, nowMs) === true);
        if (isBlind) for (const stage of stagesOf(endpoint)) blindAtMs[stage] = nowMs;
        return isBlind;
      },
    }),
    ...(distinct.some((child) => child.seatsOf !== undefined) && {
      seatsOf: (endpoint: EndpointView, nowMs: number) => fewestSeats(judgesOf(endpoint), endpoint, nowMs),
    }),
  };
}

/** As many requests fit as the strictest judge lets in. One that fails, or answers with no number, is left out. */
export function fewestSeats(
  judges: readonly SaturationDetector[],
  endpoint: EndpointView,
  nowMs: number,
): number | undefined {
  let fewest: number | undefined;
  for (const detector of judges) {
    try {
      const seats: unknown = detector.seatsOf?.(endpoint, nowMs);
      if (typeof seats === 'number' && seats >= 0) fewest = Math.min(fewest ?? seats, seats);
    } catch {
      // The fault is reported where the detector is read.
    }
  }
  return fewest;
}

/** Sorts the endpoints of a pool into stages, anew when its members or their labels have changed. */
function stagePools(): (pool: PoolView) => readonly StagePool[] {
  let sorted: readonly EndpointView[] | undefined;
  let sortedVersion: number | undefined;
  let pools: readonly StagePool[] = [];
  return ({ endpoints, version }) => {
    if (endpoints === sorted && version === sortedVersion) return pools;
    const partition = partitionByRole(endpoints);
    pools = stages.flatMap((stage) => {
      const pool = new VisiblePart(partition[stage], undefined);
      return partition[stage].length === 0 ? [] : [Object.assign(pool, { stage })];
    });
    sorted = endpoints;
    sortedVersion = version;
    return pools;
  };
}

/** The names of the detectors: one for both stages, or one for each. */
const shape = s.optionals(s.text(), 'detector', 'prefill', 'decode');

function namesOneOrBoth({ detector, prefill, decode }: s.Output<typeof shape>, report: s.Report): void {
  const isOne = detector !== undefined && prefill === undefined && decode === undefined;
  const isTwo = detector === undefined && prefill !== undefined && decode !== undefined;
  if (!isOne && !isTwo) report('either "detector", or both "prefill" and "decode"');
}

const parameters = s.object(shape, namesOneOrBoth);

export const stageAwarePlugin: Definition<SaturationDetector, DetectorReferences> = define(
  type,
  parameters,
  ({ detector = '', prefill = detector, decode = detector }, references: DetectorReferences) => {
    const named = new NamedDetectors(references);
    const inPrefill = named.find(prefill, detector === '' ? 'prefill' : 'detector');
    const inDecode = decode === prefill ? inPrefill : named.find(decode, 'decode');
    if (inPrefill === undefined || inDecode === undefined) throw named.toError(type);
    return byStage({ prefill: inPrefill, decode: inDecode });
  },
);
