/** Resolves options; one error lists what is wrong. Longer than most files, because one schema has every option. */
import { gaieLegacy } from '../admission/gaie-legacy.js';
import { isAsyncFunction } from '../base/async-function.js';
import { realClock } from '../base/clock.js';
import { endpointTurns } from '../base/endpoint-turns.js';
import { memberOf } from '../base/faults/foreign-values.js';
import * as rules from '../base/schema/cross-field-rules.js';
import * as s from '../base/schema/schema.js';
import type { EndpointPool } from '../endpoints/endpoint-pool.js';
import type { EndpointFilter } from '../endpoints/filters/endpoint-filter.js';
import { leastLoaded } from '../endpoints/pickers/least-loaded.js';
import { staticUsageLimit } from '../gate/ceilings/static-usage-limit.js';
import type { Constraint } from '../gate/constraint.js';
import { concurrencyDetector } from '../gate/detectors/concurrency-detector.js';
import { isConstraint, partsOf } from '../gate/parts.js';
import { noDetector, readDetector } from '../gate/read-detector.js';
import type { SaturationDetector } from '../gate/saturation-detector.js';
import { readSeatListener } from '../gate/seat-listener.js';
import { pluginOf } from '../plugins/kinds.js';
import { agingOrder, type BandOrder, fifoOrder, strictOrder } from '../tiers/1-priority/band-order.js';
import { rankedOrder } from '../tiers/1-priority/ranked-order.js';
import { roundRobin } from '../tiers/2-fairness/round-robin.js';
import { fcfs } from '../tiers/3-ordering/fcfs.js';
import type { FlowProfile, InFlightCap } from '../tiers/flow.js';
import type { ItemView } from '../tiers/views.js';
import { isMaker, type PartMaker } from './engine/parts.js';
import type { FlowRequest } from './flow-request.js';
import { askedFlows, type FlowSettingsSource, namedFlows } from './flow-settings.js';
import type { Eviction, FlowControllerOptions, Limits, ResolvedBand, ResolvedOptions, Shadow } from './options.js';

const defaultLimits: Limits = { maxRequests: 10_000, maxBytes: 2 ** 30 };
const defaultBandLimits: Limits = { maxRequests: 5000, maxBytes: 1e9 };
/** Half of the default of its band, so that there is room for a second tenant. */
const defaultFlowLimits: Limits = { maxRequests: 2500, maxBytes: 5e8 };
const unlimited: Limits = { maxRequests: Infinity, maxBytes: Infinity };
const defaultBandIdleTimeoutMs = 600_000;
const defaultMaxBands = 64;
/** There is one object of each, so that a reconfiguration sees that they are the same. None keeps state. */
const defaultFairness = /* @__PURE__ */ roundRobin();
const defaultOrdering = /* @__PURE__ */ fcfs();
const defaultUsageLimit = /* @__PURE__ */ staticUsageLimit();
const defaultPicker = /* @__PURE__ */ leastLoaded();

const limits = s.object({ maxRequests: s.optional(s.quantity('1k')), maxBytes: s.optional(s.quantity('10Gi')) });

/** At least one: a cap of nothing would hold for ever. */
const atLeastOne = s.fromOne('an integer from 1 up, Infinity, or a quantity like "16k"');
const capParts = s.object({ requests: s.optional(atLeastOne), tokens: s.optional(atLeastOne) });
const inFlight = s.element<InFlightCap>((given, report) => {
  const isObject = typeof given === 'object' && given !== null;
  const { requests = Infinity, tokens = Infinity } =
    (isObject ? s.readBy(capParts, given, report) : { requests: s.readBy(atLeastOne, given, report) }) ?? {};
  return { maxRequests: requests, maxTokens: tokens };
});

const template = {
  limits: s.optional(limits),
  flowLimits: s.optional(limits),
  maxInFlightPerFlow: s.optional(inFlight),
  requestTtl: s.optional(s.duration()),
  fairness: s.optional(pluginOf('fairness'), defaultFairness),
  ordering: s.optional(pluginOf('ordering'), defaultOrdering),
  saturationDetector: s.optional(s.element(readDetector)),
  minShare: s.optional(s.ratio(), 0),
  endpoints: s.optional(endpointTurns(s.duration('200ms'))),
};

const flowSettings = s.object({
  weight: s.optional(s.positiveInteger(), 1),
  limits: s.optional(limits),
  maxInFlight: s.optional(inFlight),
});
const flowProfile = s.element<FlowProfile>((given, report) => {
  const read = s.readBy(flowSettings, given, report);
  return read && { ...read, limits: read.limits && fill(read.limits, unlimited), maxInFlight: read.maxInFlight };
});
const profiles = s.record(flowProfile);
const flows = s.element<Record<string, FlowProfile> | AskFlows>((given, report) => {
  if (typeof given === 'function' && !isAsyncFunction(given)) return given as AskFlows;
  return s.readBy(profiles, given, (expected, path = [], got) => {
    if (path.length > 0) report(expected, path, got);
    else report('an object, or a function that answers at once');
  });
});

/** A function whose answer is needed at once. */
function atOnce<F>(): s.Schema<F> {
  return s.element<F>((given, report) => {
    if (typeof given === 'function' && !isAsyncFunction(given)) return given as F;
    return report('a function that answers at once');
  });
}

/** A word, or an object in its place, which `what` names. */
/* @__NO_SIDE_EFFECTS__ */ function wordOr<W extends string, O>(
  words: s.Schema<W>,
  object: s.Schema<O>,
  what: string,
): s.Schema<W | O> {
  return s.element<W | O>((given, report) => {
    if (typeof given === 'object' && given !== null) return s.readBy(object, given, report);
    return s.readBy(words, given, (expected, ...at) => report(`${expected}, or ${what}`, ...at));
  });
}

const orderNames = s.oneOf('strict', 'fifo', 'aging');
const bandOrder = wordOr(orderNames, pluginOf('bandOrder'), 'a band selection policy, such as weightedBands()');
const shadowMode = s.objectWith<Shadow & { begin: unknown }>('what shadow() makes', 'begin');
const mode = wordOr(s.oneOf('queue', 'admission'), shadowMode, 'shadow()');

const evictionText = 'inFlightEviction(), with its options, such as inFlightEviction({ graceMs: 500 })';
const evictionMaker = s.objectWith<Eviction & { begin: unknown }>(evictionText, 'begin');

const gateShape = {
  closeAt: s.optional(s.aboveZero(), rules.defaultCloseAt),
  openAt: s.optional(s.atLeastZero()),
  failValue: s.optional(s.atLeastZero(), 1),
  recheckIntervalMs: s.optional(s.aboveZero(), 10),
};

const shape = {
  saturationDetector: s.optional(s.element(readDetector)),
  constraints: s.optional(s.list(pluginOf('constraint')), []),
  seatListener: s.optional(s.element(readSeatListener)),
  maxConcurrency: s.optional(s.positiveInteger()),
  gate: s.orEmpty(s.object(gateShape, rules.opensBelowClosing)),
  mode: s.optional(mode, 'queue'),
  admission: s.optional(pluginOf('admission')),
  eviction: s.optional(evictionMaker),
  overflow: s.optional(s.oneOf('reject', 'displace', 'fair'), 'reject'),
  onDispatch: s.optional(atOnce<(item: ItemView) => string | undefined>()),
  estimate: s.optional(atOnce<NonNullable<ResolvedOptions['estimate']>>()),
  bandOrder: s.optional(bandOrder, 'strict'),
  bandPromotion: s.optional(s.duration(), 60_000),
  minShareUnit: s.optional(s.oneOf('requests', 'tokens'), 'requests'),
  flows: s.optional(flows, {}),
  usageLimitPolicy: s.optional(pluginOf('usageLimit'), defaultUsageLimit),
  limits: s.optional(limits),
  bands: s.optional(s.list(s.object(s.withKeys({ priority: s.integer() }, template))), []),
  defaultBand: s.orEmpty(s.object(template)),
  defaultNegativeBand: s.optional(s.object(template)),
  maxBands: s.optional(s.integer({ from: 1, to: rules.mostBands })),
  maxFlows: s.optional(s.positiveInteger(), 100_000),
  flowIdleTimeout: s.optional(s.positiveDuration('5m'), rules.defaultFlowIdleTimeoutMs),
  bandIdleTimeout: s.optional(s.positiveDuration('10m')),
  defaultRequestTtl: s.optional(s.duration(), 60_000),
  noEndpointRequestTtl: s.optional(s.duration()),
  pool: s.optional(s.objectWith<EndpointPool>('an EndpointPool', 'add', 'report', 'attach', 'book', 'unbook')),
  endpointPicker: s.optional(pluginOf('endpointPicker')),
  endpointFilters: s.optional(s.list(pluginOf('endpointFilter'))),
  headroom: s.optional(s.oneOf('preferred', 'required')),
  holBlocking: s.optional(s.oneOf('band', 'flow', 'none')),
  maxDispatchesPerTurn: s.optional(s.positiveInteger(), 1000),
  maxLeaseMs: s.optional(s.aboveZero(), Infinity),
  overdueLeases: s.optional(s.oneOf('warn', 'release'), 'warn'),
  traceLeases: s.optional(s.flag()),
  clock: s.optional(s.clock(), realClock),
};

type Parsed = s.Output<typeof shape>;
type ParsedBand = Parsed['defaultBand'];

const options: s.Schema<Parsed> = s.object(
  shape,
  rules.distinctPriorities('bands'),
  rules.roomForBands('bands'),
  rules.bandOutlivesFlows,
  hasPoolWhereNeeded,
  letsSessionsPass,
  sharesLeaveRoom,
  hasOneDetector,
);

/** Resolves units and defaults. O(bands). @throws FlowConfigError listing every problem, opened by `subject` */
export function resolveOptions<R extends FlowRequest>(
  input: FlowControllerOptions<R>,
  subject = 'FlowController options',
): ResolvedOptions {
  const parsed = s.parse(options, input, subject);
  const { gate, defaultBand, mode, endpointFilters, flowIdleTimeout, maxConcurrency } = parsed;
  const bands = [...parsed.bands];
  const constraints = constraintsOf(parsed);
  const bySession = sessionFilters(constraints);
  const partMakers = constraints.filter((each) => isMaker<PartMaker>(each, 'makePart'));
  // `hasOneDetector` has seen to it that there is one, or constraints.
  const saturationDetector =
    parsed.saturationDetector ?? (maxConcurrency === undefined ? noDetector : concurrencyDetector({ maxConcurrency }));
  const profiles = flowsOf(parsed);
  const mayPark = profiles.mayCap || partMakers.length > 0;
  const hasGroups = namesGroups(parsed);
  const holBlocking = parsed.holBlocking ?? (bySession.length > 0 ? 'none' : hasGroups ? 'flow' : 'band');
  if (!bands.some((band) => band.priority === 0)) bands.push({ ...defaultBand, priority: 0 });
  bands.sort((a, b) => b.priority - a.priority);
  return {
    ...parsed,
    saturationDetector,
    gate: { ...gate, openAt: gate.openAt ?? gate.closeAt },
    admission: parsed.admission ?? (mode === 'admission' ? gaieLegacy() : undefined),
    eviction: resolveEviction(parsed, saturationDetector),
    bandOrder: orderOf(parsed),
    flows: profiles,
    limits: fill(parsed.limits, defaultLimits),
    bands: bands.map((band) => ({ priority: band.priority, ...resolveBand(band, parsed, mayPark, holBlocking) })),
    defaultBand: resolveBand(defaultBand, parsed, mayPark, holBlocking),
    defaultNegativeBand: resolveBand(parsed.defaultNegativeBand ?? defaultBand, parsed, mayPark, holBlocking),
    maxBands: parsed.maxBands ?? Math.max(defaultMaxBands, rules.countBands(bands)),
    flowIdleTimeoutMs: flowIdleTimeout,
    bandIdleTimeoutMs: parsed.bandIdleTimeout ?? Math.max(defaultBandIdleTimeoutMs, flowIdleTimeout),
    noEndpointRequestTtlMs: foreverAtZero(parsed.noEndpointRequestTtl ?? parsed.defaultRequestTtl),
    hasOwnNoEndpointTtl: parsed.noEndpointRequestTtl !== undefined,
    partMakers,
    endpointPicker: parsed.endpointPicker ?? defaultPicker,
    endpointFilters: [...(endpointFilters ?? []), ...bySession],
    headroom: parsed.headroom ?? (endpointFilters === undefined && !hasGroups ? 'preferred' : 'required'),
    holBlocking,
    traceLeases: parsed.traceLeases ?? isDevelopment(),
  };
}

function resolveBand(
  band: ParsedBand,
  parsed: Parsed,
  mayPark: boolean,
  holBlocking: ResolvedOptions['holBlocking'],
): ResolvedBand {
  const { limits: global, defaultRequestTtl } = parsed;
  return {
    limits: fill(band.limits, {
      maxRequests: Math.max(defaultBandLimits.maxRequests, global?.maxRequests ?? 0),
      maxBytes: Math.max(defaultBandLimits.maxBytes, global?.maxBytes ?? 0),
    }),
    flowLimits: fill(band.flowLimits, flowLimitsOf(band, parsed)),
    requestTtlMs: foreverAtZero(band.requestTtl ?? defaultRequestTtl),
    fairness: band.fairness,
    ordering: band.ordering,
    saturationDetector: band.saturationDetector,
    holdsFlows: holBlocking !== 'band',
    parksFlows: band.maxInFlightPerFlow !== undefined || mayPark,
    maxInFlightPerFlow: band.maxInFlightPerFlow,
    minShare: band.minShare,
    endpoints: band.endpoints,
  };
}

/** One flow must not fill a queue of default size; one that a host sized, it may. `fair` makes room itself. */
function flowLimitsOf({ limits: own }: ParsedBand, { limits: global, overflow }: Parsed): Limits {
  if (overflow === 'fair') return unlimited;
  const isTold = (resource: keyof Limits): boolean => own?.[resource] !== undefined || global?.[resource] !== undefined;
  return {
    maxRequests: isTold('maxRequests') ? Infinity : defaultFlowLimits.maxRequests,
    maxBytes: isTold('maxBytes') ? Infinity : defaultFlowLimits.maxBytes,
  };
}

function hasOneDetector({ saturationDetector, maxConcurrency, constraints }: Parsed, report: s.Report): void {
  if (maxConcurrency === undefined && saturationDetector === undefined && !constraints?.length)
    report('a saturation detector, or maxConcurrency, such as 15, which is short for one; or constraints', [
      'saturationDetector',
    ]);
  else if (maxConcurrency !== undefined && saturationDetector !== undefined)
    report('no saturationDetector beside it, which it is short for', ['maxConcurrency'], 'both');
}

function resolveEviction({ eviction: maker }: Parsed, detector: SaturationDetector): ResolvedOptions['eviction'] {
  if (maker === undefined) return undefined;
  const { settings } = maker;
  return { ...settings, graceMs: settings.graceMs ?? (detector.needsPool ? 500 : 0), maker };
}

function orderOf({ bandOrder, bandPromotion }: Parsed): BandOrder {
  if (typeof bandOrder === 'object') return bandOrder.strict === true ? strictOrder : rankedOrder(bandOrder);
  return { strict: strictOrder, fifo: fifoOrder, aging: agingOrder(bandPromotion) }[bandOrder];
}

type AskFlows = (fairnessId: string) => unknown;

function flowsOf({ flows: given, maxFlows }: Parsed): FlowSettingsSource {
  if (typeof given === 'function') return askedFlows(given, flowProfile, maxFlows);
  return namedFlows(new Map(Object.entries(given)));
}

/** Shares that add up to 1 leave the order of bands nothing to decide. A template's counts for each band made of it. */
function sharesLeaveRoom({ bands, defaultBand, defaultNegativeBand, maxBands }: Parsed, report: s.Report): void {
  const given = Array.isArray(bands) ? bands.filter((band) => band !== undefined && band !== null) : [];
  const configured = given.reduce((sum, band) => sum + (band.minShare ?? 0), 0);
  if (configured >= 1) {
    report('shares that add up to less than 1', ['bands'], `minShare of all bands together ${configured}`);
    return;
  }
  const positive = defaultBand?.minShare ?? 0;
  const negative = (defaultNegativeBand ?? defaultBand)?.minShare ?? 0;
  const hasZero = given.some(({ priority }) => priority === 0);
  const most = maxBands ?? Math.max(defaultMaxBands, rules.countBands(given));
  const made = Math.max(most - given.length - (hasZero ? 0 : 1), 0);
  const all = configured + (hasZero ? 0 : positive) + made * Math.max(positive, negative);
  if (!(all >= 1)) return;
  const template = negative > positive ? 'defaultNegativeBand' : 'defaultBand';
  const expected = `shares of up to ${most} bands (maxBands) that add up to less than 1`;
  report(expected, [template, 'minShare'], `${Number(all.toFixed(6))} when all of them exist`);
}

function fill(given: { [K in keyof Limits]?: number | undefined } | undefined, otherwise: Limits): Limits {
  return { maxRequests: given?.maxRequests ?? otherwise.maxRequests, maxBytes: given?.maxBytes ?? otherwise.maxBytes };
}

/** Whether the process says, by NODE_ENV, that it is one of development. False where there are no such words. */
function isDevelopment(): boolean {
  const { process } = globalThis as { process?: { env?: Readonly<Record<string, string | undefined>> } };
  return process?.env?.NODE_ENV === 'development';
}

/** 0 means for ever, as in configuration files. */
function foreverAtZero(ms: number): number {
  return ms === 0 ? Infinity : ms;
}

function hasPoolWhereNeeded(parsed: Parsed, report: s.Report): void {
  const { endpointPicker, endpointFilters, pool, headroom } = parsed;
  // A request that goes to a full server of its first group never waits for the next.
  if (headroom === 'preferred' && namesGroups(parsed))
    report('"required", because bands name groups of endpoints', ['headroom'], '"preferred"');
  if (pool !== undefined) return;
  if (endpointFilters !== undefined) report('an EndpointPool, for endpointFilters to choose from', ['pool']);
  if (endpointPicker !== undefined) report('an EndpointPool, for endpointPicker to pick from', ['pool']);
  if (namesGroups(parsed)) report('an EndpointPool, for the groups of endpoints that bands name', ['pool']);
  for (const detector of detectorsOf(parsed))
    if (detector?.needsPool) report(`an EndpointPool, for ${detector.type} to read`, ['pool']);
}

function namesGroups(parsed: Parsed): boolean {
  return templatesOf(parsed).some((template) => template?.endpoints !== undefined);
}

/** A resident session would wait behind a new one, which waits for a session to end: for ever, if a client has both. */
function letsSessionsPass(parsed: Parsed, report: s.Report): void {
  const { holBlocking } = parsed;
  if (holBlocking === undefined || holBlocking === 'none') return;
  const limit = constraintsOf(parsed).find(tellsSessions);
  if (limit === undefined) return;
  const expected = `"none", because ${limit.type} has requests of each session queue apart`;
  report(expected, ['holBlocking'], `"${holBlocking}"`);
}

/** A filter for each constraint that tells sessions apart: each session queues apart; every endpoint serves all. */
function sessionFilters(constraints: readonly Constraint[]): EndpointFilter[] {
  return constraints.filter(tellsSessions).map((constraint) => ({
    type: constraint.type,
    classOf: (item) => constraint.sessionOf?.(item),
    keep: (endpoints) => endpoints,
  }));
}

function tellsSessions(constraint: Constraint): boolean {
  return memberOf(constraint, 'sessionOf') !== undefined;
}

/** Those of the list, and those that detectors have as parts. */
function constraintsOf(parsed: Parsed): Constraint[] {
  const listed = Array.isArray(parsed.constraints) ? parsed.constraints : [];
  const detectors = [...detectorsOf(parsed)].filter((detector) => detector !== undefined);
  return partsOf(...listed, ...detectors).flatMap(({ plugin }) => (isConstraint(plugin) ? plugin : []));
}

/** The detectors of all bands, each once. */
function detectorsOf(parsed: Parsed): Set<SaturationDetector | undefined> {
  return new Set([parsed.saturationDetector, ...templatesOf(parsed).map((template) => template?.saturationDetector)]);
}

/** The settings of every band; undefined for those that are wrong. */
function templatesOf({ bands, defaultBand, defaultNegativeBand }: Parsed): (ParsedBand | undefined)[] {
  return [...(Array.isArray(bands) ? bands : []), defaultBand, defaultNegativeBand];
}
