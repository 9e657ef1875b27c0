/**
 * From what people write to what the controller runs on: one schema for every option, then the defaults.
 * Either everything is right, or one error lists all that is wrong.
 */
import * as z from 'zod/mini';
import { gaieLegacy } from '../admission/gaie-legacy.js';
import { type Clock, realClock } from '../base/clock.js';
import { readPlugin } from '../base/plugin-shape.js';
import {
  bandOutlivesFlows,
  countBands,
  defaultCloseAt,
  defaultFlowIdleTimeoutMs,
  distinctPriorities,
  mostBands,
  opensBelowClosing,
  roomForBands,
} from '../base/schema/cross-field-rules.js';
import { element, object, optional, type Report, rule, value } from '../base/schema/element.js';
import { parse } from '../base/schema/parse.js';
import {
  aboveZero,
  atLeastZero,
  duration,
  integer,
  oneOf,
  positiveDuration,
  positiveInteger,
  quantity,
  ratio,
} from '../base/schema/types.js';
import type { EndpointPool } from '../endpoints/endpoint-pool.js';
import type { EndpointFilter } from '../endpoints/filters/endpoint-filter.js';
import { leastLoaded } from '../endpoints/pickers/least-loaded.js';
import { sheddableOnly } from '../eviction/sheddable-filter.js';
import { priorityThenTime } from '../eviction/victim-orders.js';
import { staticUsageLimit } from '../gate/ceilings/static-usage-limit.js';
import { type SaturationDetector, type SaturationFunction, saturationDetectorShape } from '../gate/saturation-detector.js';
import { pluginOf } from '../plugins/kinds.js';
import { agingOrder, type BandOrder, fifoOrder, strictOrder } from '../tiers/1-priority/band-order.js';
import { globalStrict } from '../tiers/2-fairness/global-strict.js';
import { fcfs } from '../tiers/3-ordering/fcfs.js';
import type { FlowProfile } from '../tiers/flow.js';
import type { FlowRequest } from './flow-request.js';
import type { FlowControllerOptions, Limits, ResolvedBand, ResolvedOptions } from './options.js';

const defaultLimits: Limits = { maxRequests: 10_000, maxBytes: 2 ** 30 };
const defaultBandLimits: Limits = { maxRequests: 5000, maxBytes: 1e9 };
const unlimited: Limits = { maxRequests: Infinity, maxBytes: Infinity };
const defaultRequestTtlMs = 60_000;
const defaultBandIdleTimeoutMs = 600_000;
const defaultMaxBands = 64;
const defaultMaxFlows = 100_000;
/** One object each, so that a reconfiguration sees that they stayed. None keeps state. */
const defaultFairness = globalStrict();
const defaultOrdering = fcfs();
const defaultUsageLimit = staticUsageLimit();
const defaultPicker = leastLoaded();
const noFilters: readonly EndpointFilter[] = [];
const defaultEvictionFilter = sheddableOnly();
const defaultEvictionOrdering = priorityThenTime();

const limits = object({ maxRequests: optional(quantity('1k')), maxBytes: optional(quantity('10Gi')) });

const template = {
  limits: optional(limits),
  flowLimits: optional(limits),
  requestTtl: optional(duration()),
  fairness: optional(pluginOf('fairness')),
  ordering: optional(pluginOf('ordering')),
  saturationDetector: optional(element(readDetector)),
  minShare: optional(ratio()),
};

const eviction = object({
  filter: optional(pluginOf('evictionFilter')),
  ordering: optional(pluginOf('evictionOrdering')),
  maxPerDecision: optional(positiveInteger()),
  graceMs: optional(atLeastZero()),
  timeoutMs: optional(aboveZero()),
});

const flowProfile = object({ weight: optional(positiveInteger()), limits: optional(limits) });

const gate = object({
  closeAt: optional(aboveZero()),
  openAt: optional(atLeastZero()),
  failValue: optional(atLeastZero()),
  recheckIntervalMs: optional(aboveZero()),
}).check(opensBelowClosing());

const options = object({
  saturationDetector: element(readDetector),
  gate: optional(gate),
  mode: optional(oneOf('queue', 'admission')),
  admission: optional(pluginOf('admission')),
  eviction: optional(eviction),
  overflow: optional(oneOf('reject', 'displace')),
  bandOrder: optional(oneOf('strict', 'fifo', 'aging')),
  bandPromotion: optional(duration()),
  flows: optional(z.record(z.string(), flowProfile)),
  usageLimitPolicy: optional(pluginOf('usageLimit')),
  limits: optional(limits),
  bands: optional(z.array(object({ priority: integer(), ...template }))),
  defaultBand: optional(object(template)),
  defaultNegativeBand: optional(object(template)),
  maxBands: optional(integer({ from: 1, to: mostBands })),
  maxFlows: optional(positiveInteger()),
  flowIdleTimeout: optional(positiveDuration('5m')),
  bandIdleTimeout: optional(positiveDuration('10m')),
  defaultRequestTtl: optional(duration()),
  noEndpointRequestTtl: optional(duration()),
  pool: optional(value('an EndpointPool', isPool)),
  endpointPicker: optional(pluginOf('endpointPicker')),
  endpointFilters: optional(z.array(pluginOf('endpointFilter'))),
  headroom: optional(oneOf('preferred', 'required')),
  holBlocking: optional(oneOf('band', 'flow', 'none')),
  maxDispatchesPerTurn: optional(positiveInteger()),
  clock: optional(value('a clock with now, setTimeout and clearTimeout', isClock)),
}).check(distinctPriorities('bands'), roomForBands('bands'), bandOutlivesFlows(), rule(hasPoolWhereNeeded), rule(sharesLeaveRoom));

type Parsed = z.output<typeof options>;
type ParsedBand = z.output<ReturnType<typeof object<typeof template>>>;

/**
 * Every option with its unit resolved and its default filled in. O(bands). `subject` opens the error's message.
 * @throws FlowConfigError that lists every problem; `subject` opens its message.
 */
export function resolveOptions<R extends FlowRequest>(
  input: FlowControllerOptions<R>,
  subject = 'FlowController options',
): ResolvedOptions {
  const parsed = parse(options, input, subject);
  const bands = [...(parsed.bands ?? [])];
  if (!bands.some((band) => band.priority === 0)) bands.push({ ...parsed.defaultBand, priority: 0 });
  bands.sort((a, b) => b.priority - a.priority);
  const { flowIdleTimeout = defaultFlowIdleTimeoutMs, closeAt = defaultCloseAt } = { ...parsed, ...parsed.gate };
  return {
    saturationDetector: parsed.saturationDetector,
    gate: {
      closeAt,
      openAt: parsed.gate?.openAt ?? closeAt,
      failValue: parsed.gate?.failValue ?? 1,
      recheckIntervalMs: parsed.gate?.recheckIntervalMs ?? 10,
    },
    usageLimitPolicy: parsed.usageLimitPolicy ?? defaultUsageLimit,
    mode: parsed.mode ?? 'queue',
    admission: parsed.admission ?? (parsed.mode === 'admission' ? gaieLegacy() : undefined),
    eviction: resolveEviction(parsed),
    overflow: parsed.overflow ?? 'reject',
    bandOrder: orderOf(parsed),
    flows: new Map(Object.entries(parsed.flows ?? {}).map(([fairnessId, profile]) => [fairnessId, resolveFlow(profile)])),
    limits: fill(parsed.limits, defaultLimits),
    bands: bands.map((band) => ({ priority: band.priority, ...resolveBand(band, parsed) })),
    defaultBand: resolveBand(parsed.defaultBand, parsed),
    defaultNegativeBand: resolveBand(parsed.defaultNegativeBand ?? parsed.defaultBand, parsed),
    maxBands: parsed.maxBands ?? Math.max(defaultMaxBands, countBands(bands)),
    maxFlows: parsed.maxFlows ?? defaultMaxFlows,
    flowIdleTimeoutMs: flowIdleTimeout,
    bandIdleTimeoutMs: parsed.bandIdleTimeout ?? Math.max(defaultBandIdleTimeoutMs, flowIdleTimeout),
    noEndpointRequestTtlMs: ttlMs(parsed.noEndpointRequestTtl ?? parsed.defaultRequestTtl),
    pool: parsed.pool,
    endpointPicker: parsed.endpointPicker ?? defaultPicker,
    endpointFilters: parsed.endpointFilters ?? noFilters,
    headroom: parsed.headroom ?? (parsed.endpointFilters === undefined ? 'preferred' : 'required'),
    holBlocking: parsed.holBlocking ?? 'band',
    maxDispatchesPerTurn: parsed.maxDispatchesPerTurn ?? 1000,
    clock: parsed.clock ?? realClock,
  };
}

function resolveBand(band: ParsedBand = {}, { limits: global, defaultRequestTtl, holBlocking }: Parsed): ResolvedBand {
  return {
    limits: fill(band.limits, {
      maxRequests: Math.max(defaultBandLimits.maxRequests, global?.maxRequests ?? 0),
      maxBytes: Math.max(defaultBandLimits.maxBytes, global?.maxBytes ?? 0),
    }),
    flowLimits: fill(band.flowLimits, unlimited),
    requestTtlMs: ttlMs(band.requestTtl ?? defaultRequestTtl),
    fairness: band.fairness ?? defaultFairness,
    ordering: band.ordering ?? defaultOrdering,
    saturationDetector: band.saturationDetector,
    holdsFlows: holBlocking === 'flow' || holBlocking === 'none',
    minShare: band.minShare ?? 0,
  };
}

function resolveEviction({ eviction: given, saturationDetector }: Parsed): ResolvedOptions['eviction'] {
  if (given === undefined) return undefined;
  const { filter, ordering, maxPerDecision, graceMs, timeoutMs } = given;
  return {
    filter: filter ?? defaultEvictionFilter,
    ordering: ordering ?? defaultEvictionOrdering,
    maxPerDecision: maxPerDecision ?? 2,
    graceMs: graceMs ?? (saturationDetector.needsPool ? 500 : 0),
    timeoutMs: timeoutMs ?? 10_000,
  };
}

function orderOf({ bandOrder = 'strict', bandPromotion = 60_000 }: Parsed): BandOrder {
  return { strict: strictOrder, fifo: fifoOrder, aging: agingOrder(bandPromotion) }[bandOrder];
}

function resolveFlow({ weight = 1, limits: given }: z.output<typeof flowProfile>): FlowProfile {
  return { weight, limits: given === undefined ? undefined : fill(given, unlimited) };
}

/** Shares that add up to everything would leave nothing for the order of bands to decide. */
function sharesLeaveRoom({ bands }: Parsed, report: Report): void {
  const total = Array.isArray(bands) ? bands.reduce((sum, band) => sum + (band?.minShare ?? 0), 0) : 0;
  if (total >= 1) report('shares that add up to less than 1', ['bands'], `minShare of all bands together ${total}`);
}

function fill(given: ParsedBand['limits'], otherwise: Limits): Limits {
  return { maxRequests: given?.maxRequests ?? otherwise.maxRequests, maxBytes: given?.maxBytes ?? otherwise.maxBytes };
}

/** 0 means for ever, as in configuration files. */
function ttlMs(ms: number = defaultRequestTtlMs): number {
  return ms === 0 ? Infinity : ms;
}

function readDetector(candidate: unknown, report: Report): SaturationDetector | undefined {
  return isSaturationFunction(candidate)
    ? { type: 'function', saturation: candidate }
    : readPlugin(saturationDetectorShape, candidate, report);
}

function isSaturationFunction(candidate: unknown): candidate is SaturationFunction {
  return typeof candidate === 'function';
}

/** By its shape: the pool may come from the package's other copy (ESM, CommonJS). */
function isPool(candidate: unknown): candidate is EndpointPool {
  return hasMethods(candidate, 'add', 'report', 'attach', 'book', 'unbook');
}

function isClock(candidate: unknown): candidate is Clock {
  return hasMethods(candidate, 'now', 'setTimeout', 'clearTimeout');
}

function hasMethods(candidate: unknown, ...names: readonly string[]): boolean {
  return typeof candidate === 'object' && candidate !== null && names.every((name) => typeof Reflect.get(candidate, name) === 'function');
}

function hasPoolWhereNeeded(parsed: Parsed, report: Report): void {
  const { endpointPicker, endpointFilters, saturationDetector, bands, defaultBand, defaultNegativeBand, pool } = parsed;
  if (pool !== undefined) return;
  if (endpointFilters !== undefined) report('an EndpointPool, for endpointFilters to choose from', ['pool']);
  if (endpointPicker !== undefined) report('an EndpointPool, for endpointPicker to pick from', ['pool']);
  const templates = [...(Array.isArray(bands) ? bands : []), defaultBand, defaultNegativeBand];
  for (const detector of new Set([saturationDetector, ...templates.map((template) => template?.saturationDetector)])) {
    if (detector?.needsPool) report(`an EndpointPool, for ${detector.type} to read`, ['pool']);
  }
}
