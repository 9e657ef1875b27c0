/** The `flowControl` section of an EndpointPickerConfig: its fields, and the constructor options that they become. */
import type { output } from 'zod/v4/core';
import { list, object, orEmpty, record } from '../base/schema/containers.js';
import {
  bandOutlivesFlows,
  distinctPriorities,
  mostBands,
  opensBelowClosing,
  roomForBands,
} from '../base/schema/cross-field-rules.js';
import { optional, type Report } from '../base/schema/element.js';
import { aboveZero, atLeastZero, flag, integer, oneOf, positiveInteger, ratio, text } from '../base/schema/types.js';
import type { BandTemplate, Duration, FlowControllerOptions } from '../index.js';
import { interval, quantity, ttl } from './config-elements.js';
import type { DeclaredPlugins } from './declared-plugins.js';
import type { Problems } from './problems.js';
import { flowLimits, flowSettings, flowsOf, inFlight, knownPlans, unlimitedWhereZero } from './tenant-plans.js';

/** The limits of a band whose own limit is absent or 0, as in llm-d. */
const bandDefaults = { maxRequests: 5000, maxBytes: 1e9 };

const limitNames = ['maxRequests', 'maxBytes'] as const;

/**
 * The meaning of a file that is silent. `llm-d`: as the reference has it, flows are mere labels, and a full queue
 * rejects. `headgate`: flows take turns, and a full queue drops from the flow with most waiting.
 */
export type ConfigDefaults = 'llm-d' | 'headgate';

const silence = {
  'llm-d': { fairness: 'global-strict-fairness-policy', overflow: 'reject' },
  headgate: { fairness: 'round-robin-fairness-policy', overflow: 'fair' },
} as const;

/** Parameters of types that mean something else where a file is silent than in code. */
export const silentParameters: Record<ConfigDefaults, Readonly<Record<string, object>>> = {
  'llm-d': { 'utilization-detector': { queueDepthThreshold: 5 } },
  headgate: {},
};

/** Settings that say nothing while `enableEviction` is off. */
const evictionNames = [
  'evictionFilterPluginRef',
  'evictionOrderingPluginRef',
  'maxRevocationsPerDecision',
  'evictionConfirmationGrace',
  'evictionConfirmationTimeout',
  'evictionReserve',
] as const;

function sectionSchema(plugins: DeclaredPlugins, defaults: ConfigDefaults) {
  const band = {
    maxRequests: optional(quantity('the default', '500')),
    maxBytes: optional(quantity('the default', '1Gi')),
    fairnessPolicyRef: plugins.reference('fairness', silence[defaults].fairness),
    orderingPolicyRef: plugins.reference('ordering', 'fcfs-ordering-policy'),
    defaultRequestTTL: optional(ttl()),
    saturationDetectorRef: optional(plugins.reference('saturationDetector')),
    flowLimits: optional(flowLimits()),
    maxInFlightPerFlow: optional(inFlight()),
    minShare: optional(ratio()),
  };
  const gate = {
    closeAt: optional(aboveZero()),
    openAt: optional(atLeastZero()),
    failValue: optional(atLeastZero()),
    recheckInterval: optional(interval('10ms')),
  };
  const shape = {
    maxRequests: optional(quantity('unlimited', '1k')),
    maxBytes: optional(quantity('unlimited', '10Gi')),
    defaultRequestTTL: optional(ttl()),
    noEndpointRequestTTL: optional(ttl()),
    defaultPriorityBand: orEmpty(object(band)),
    defaultNegativePriorityBand: optional(object(band)),
    priorityBands: optional(list(object({ priority: integer(), ...band }))),
    usageLimitPolicyPluginRef: plugins.reference('usageLimit', 'static-usage-limit-policy'),
    bandSelectionPolicyPluginRef: optional(plugins.reference('bandOrder')),
    saturationDetector: optional(object({ pluginRef: optional(plugins.reference('saturationDetector')) })),
    enableEviction: optional(flag()),
    evictionFilterPluginRef: optional(plugins.reference('evictionFilter')),
    evictionOrderingPluginRef: optional(plugins.reference('evictionOrdering')),
    maxRevocationsPerDecision: optional(positiveInteger()),
    evictionConfirmationGrace: optional(ttl()),
    evictionConfirmationTimeout: optional(interval('10s')),
    evictionReserve: optional(ttl()),
    mode: optional(oneOf('queue', 'admission', 'shadow')),
    admissionPolicyPluginRef: optional(plugins.reference('admission')),
    endpointPickerPluginRef: optional(plugins.reference('endpointPicker')),
    endpointFilterPluginRefs: optional(list(plugins.reference('endpointFilter'))),
    headroom: optional(oneOf('preferred', 'required')),
    holBlocking: optional(oneOf('band', 'flow', 'none')),
    overflow: optional(oneOf('reject', 'displace', 'fair'), silence[defaults].overflow),
    bandOrder: optional(oneOf('strict', 'fifo', 'aging')),
    bandPromotion: optional(ttl()),
    minShareUnit: optional(oneOf('requests', 'tokens')),
    flows: optional(record(flowSettings())),
    plans: optional(record(flowSettings())),
    tenants: optional(record(text('the name of a plan'))),
    gate: optional(object(gate, opensBelowClosing)),
    maxBands: optional(integer({ from: 1, to: mostBands })),
    maxFlows: optional(positiveInteger()),
    flowIdleTimeout: optional(interval('5m')),
    bandIdleTimeout: optional(interval('10m')),
    maxLease: optional(interval('45m')),
    overdueLeases: optional(oneOf('warn', 'release')),
  };
  return object(
    shape,
    distinctPriorities('priorityBands'),
    roomForBands('priorityBands'),
    bandOutlivesFlows,
    knownPlans,
    oneBandOrder,
  );
}

/** The word and the plugin would be two answers to one question. */
function oneBandOrder(
  { bandOrder, bandSelectionPolicyPluginRef }: { bandOrder?: unknown; bandSelectionPolicyPluginRef?: unknown },
  report: Report,
): void {
  if (bandOrder === undefined || bandSelectionPolicyPluginRef === undefined) return;
  report('nothing, because bandSelectionPolicyPluginRef names the order', ['bandOrder'], JSON.stringify(bandOrder));
}

type Section = output<ReturnType<typeof sectionSchema>>;
type Band = Section['defaultPriorityBand'];

/** Constructor options without the detector, when the section names none. */
export type SectionOptions = Omit<FlowControllerOptions, 'saturationDetector'> &
  Partial<Pick<FlowControllerOptions, 'saturationDetector'>>;

/** The options that the section stands for; undefined when it has problems, which are noted. */
export function readFlowControl(
  section: unknown,
  plugins: DeclaredPlugins,
  defaults: ConfigDefaults,
  problems: Problems,
  at: string,
): SectionOptions | undefined {
  const read = problems.check(sectionSchema(plugins, defaults), section ?? {}, `${at}flowControl`);
  if (read === undefined) return undefined;
  warnOfDefaults(read, problems, at);
  warnOfSums(read, problems, at);
  warnOfUnusedEviction(read, problems, at);
  const { gate, saturationDetector } = read;
  return {
    ...(saturationDetector?.pluginRef === undefined ? {} : { saturationDetector: saturationDetector.pluginRef }),
    gate: gate && {
      closeAt: gate.closeAt,
      openAt: gate.openAt,
      failValue: gate.failValue,
      recheckIntervalMs: gate.recheckInterval,
    },
    mode: read.mode,
    admission: read.admissionPolicyPluginRef,
    endpointPicker: read.endpointPickerPluginRef,
    endpointFilters: read.endpointFilterPluginRefs,
    headroom: read.headroom,
    holBlocking: read.holBlocking,
    eviction: evictionOf(read),
    overflow: read.overflow,
    bandOrder: read.bandSelectionPolicyPluginRef ?? read.bandOrder,
    bandPromotion: read.bandPromotion,
    minShareUnit: read.minShareUnit,
    flows: flowsOf(read),
    usageLimitPolicy: read.usageLimitPolicyPluginRef,
    limits: { maxRequests: read.maxRequests || Infinity, maxBytes: read.maxBytes || Infinity },
    bands: (read.priorityBands ?? []).map((band) => ({ priority: band.priority, ...template(band) })),
    defaultBand: template(read.defaultPriorityBand),
    defaultNegativeBand: read.defaultNegativePriorityBand && template(read.defaultNegativePriorityBand),
    maxBands: read.maxBands,
    maxFlows: read.maxFlows,
    flowIdleTimeout: read.flowIdleTimeout,
    bandIdleTimeout: read.bandIdleTimeout,
    maxLeaseMs: read.maxLease,
    overdueLeases: read.overdueLeases,
    defaultRequestTtl: withUnit(read.defaultRequestTTL),
    noEndpointRequestTtl: withUnit(read.noEndpointRequestTTL),
  };
}

function evictionOf(section: Section): FlowControllerOptions['eviction'] {
  if (section.enableEviction !== true) return undefined;
  return {
    filter: section.evictionFilterPluginRef,
    ordering: section.evictionOrderingPluginRef,
    maxPerDecision: section.maxRevocationsPerDecision,
    graceMs: section.evictionConfirmationGrace,
    timeoutMs: section.evictionConfirmationTimeout,
    reserveMs: section.evictionReserve,
  };
}

/**
 * Files have a unit in every duration, so that the constructor need not ask whether a small number was meant in
 * seconds.
 */
function withUnit(ms: number | undefined): Duration | undefined {
  return ms === undefined || ms === 0 ? ms : `${ms}ms`;
}

function template(band: Band): BandTemplate {
  return {
    // Spelt out, because the constructor would follow a larger global limit.
    limits: {
      maxRequests: band.maxRequests || bandDefaults.maxRequests,
      maxBytes: band.maxBytes || bandDefaults.maxBytes,
    },
    flowLimits: band.flowLimits && unlimitedWhereZero(band.flowLimits),
    maxInFlightPerFlow: band.maxInFlightPerFlow,
    requestTtl: withUnit(band.defaultRequestTTL),
    fairness: band.fairnessPolicyRef,
    ordering: band.orderingPolicyRef,
    saturationDetector: band.saturationDetectorRef,
    minShare: band.minShare,
  };
}

/** A band that takes the default holds less than a reader of the global limit expects. */
function warnOfDefaults(section: Section, problems: Problems, at: string): void {
  const bands = section.priorityBands ?? [];
  for (const name of limitNames) {
    const global = section[name];
    if (global === undefined || (global !== 0 && global <= bandDefaults[name])) continue;
    const fallen: string[] = bands.filter((band) => !band[name]).map((band) => `priority ${band.priority}`);
    if (!section.defaultPriorityBand[name]) fallen.push('any other priority');
    if (fallen.length === 0) continue;
    const larger = global === 0 || global === Infinity ? 'unlimited' : global;
    const hold = `bands without ${name} hold ${bandDefaults[name]}, less than the global ${larger}`;
    problems.warn(at, `flowControl: ${hold}: ${fallen.join(', ')}`);
  }
}

/**
 * Bands that together may hold more than the queue can fill it, so that a higher band is rejected, unless others are
 * evicted for it.
 */
function warnOfSums(section: Section, problems: Problems, at: string): void {
  if (section.overflow === 'fair') return;
  const bands = (section.priorityBands ?? []).filter(({ priority }) => section.overflow === 'reject' || priority >= 0);
  for (const name of limitNames) {
    const limits = bands.flatMap((band) => band[name] || []);
    const sum = limits.reduce((total, limit) => total + limit, 0);
    if (limits.length < 2 || !section[name] || sum === Infinity || sum <= section[name]) continue;
    const together = `the ${name} of the bands add up to ${sum}, more than the global ${section[name]}`;
    problems.warn(
      at,
      `flowControl: ${together}: lower bands can fill the queue, and higher ones are rejected then (overflow: fair)`,
    );
  }
}

function warnOfUnusedEviction(section: Section, problems: Problems, at: string): void {
  if (section.enableEviction === true) return;
  const unused = evictionNames.filter((name) => section[name] !== undefined);
  if (unused.length > 0) problems.warn(at, `flowControl: ignored without enableEviction: ${unused.join(', ')}`);
}
