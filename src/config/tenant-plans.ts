/**
 * Reads the settings of single flows: settings under their names, or tenants with plans that several of them share.
 *
 *     plans:   { free: { maxInFlight: 4 }, team: { weight: 4, maxInFlight: { requests: 32, tokens: 200k } } }
 *     tenants: { acme: team, '*': free }                               '*': the plan of every tenant that has no other
 */
import { didYouMean } from '../base/faults/did-you-mean.js';
import { option } from '../base/schema/json-schema.js';
import * as s from '../base/schema/schema.js';
import type { FlowControllerOptions, FlowSettings, Schema } from '../index.js';
import type { InFlightOptions } from '../types/index.js';
import { quantity } from './config-elements.js';

/** Where 0 is unlimited. */
type FileLimits = NonNullable<FlowSettings['limits']>;

interface FileFlows {
  readonly flows?: Readonly<Record<string, FlowSettings>> | undefined;
  readonly plans?: Readonly<Record<string, FlowSettings>> | undefined;
  readonly tenants?: Readonly<Record<string, string>> | undefined;
}

/** The plan of every tenant that has no other stands under this name. */
const anyTenant = '*';

export function flowLimits(): Schema<FileLimits> {
  return s.object({
    maxRequests: s.optional(quantity('unlimited', '100')),
    maxBytes: s.optional(quantity('unlimited', '1Gi')),
  });
}

/** The schema of a cap on what runs at a time: a number of requests, or requests and tokens. */
export function inFlight(): Schema<InFlightOptions> {
  const amount = s.fromOne('an integer from 1 up, or a quantity like "16k"');
  const parts = s.object({ requests: s.optional(amount), tokens: s.optional(amount) });
  return s.element<InFlightOptions>(
    (given, report) =>
      s.readBy<InFlightOptions>(typeof given === 'object' && given !== null ? parts : amount, given, report),
    (of) => ({ anyOf: [of(amount), of(parts)] }),
  );
}

export function flowSettings(): Schema<FlowSettings> {
  return s.object({
    weight: option('Turns in each round, or its share beside others; 1 without it.', s.positiveInteger()),
    limits: option('What of it may wait in each band; 0: unlimited.', flowLimits()),
    maxInFlight: option('What it may run at a time, in all bands together.', inFlight()),
  });
}

/** Every tenant has a plan that exists, and stands in one place. */
export function knownPlans({ flows, plans, tenants }: FileFlows, report: s.Report): void {
  const known = Object.keys(Object(plans));
  for (const [tenant, plan] of Object.entries(Object(tenants) as Readonly<Record<string, unknown>>)) {
    if (typeof plan === 'string' && !known.includes(plan))
      report(`one of the plans ${known.join(', ') || '(none)'}${didYouMean(plan, known)}`, ['tenants', tenant]);
    if (Object.hasOwn(Object(flows), tenant))
      report('a tenant that does not stand under "flows" as well', ['tenants', tenant]);
  }
}

/** The constructor's option; a function where every tenant has a plan. Plans that tenants name exist. */
export function flowsOf({ flows = {}, plans = {}, tenants = {} }: FileFlows): FlowControllerOptions['flows'] {
  const settingsOf = new Map(Object.entries(plans).map(([name, plan]) => [name, flowOf(plan)]));
  const named = new Map(Object.entries(flows).map(([name, flow]) => [name, flowOf(flow)]));
  for (const [tenant, plan] of Object.entries(tenants))
    if (tenant !== anyTenant) named.set(tenant, settingsOf.get(plan) as FlowSettings);
  const others = tenants[anyTenant] === undefined ? undefined : settingsOf.get(tenants[anyTenant]);
  if (others !== undefined) return (fairnessId) => named.get(fairnessId) ?? others;
  return named.size === 0 ? undefined : Object.fromEntries(named);
}

function flowOf({ weight, limits, maxInFlight }: FlowSettings): FlowSettings {
  return { weight, limits: limits && unlimitedWhereZero(limits), maxInFlight };
}

/** Limits for the constructor, where 0 means that nothing may wait. */
export function unlimitedWhereZero({ maxRequests, maxBytes }: FileLimits): FileLimits {
  return { maxRequests: maxRequests || Infinity, maxBytes: maxBytes || Infinity };
}
