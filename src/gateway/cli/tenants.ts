/** The tenants of a gateway file by its keys and by the plans of its flow control, and what of them leads nowhere. */
import { didYouMean } from '../../base/faults/did-you-mean.js';
import type { QuotaFigure } from '../../types/index.js';
import type { GatewayConfig } from '../index.js';
import type { SenderConfig } from '../settings/gateway-config.js';
import { budgetsIn } from '../shared/tenant-budgets.js';
import type { Effective, Resolved } from './effective-settings.js';
import { atATime, bytes, joined, ms, quantity } from './format-numbers.js';
import { type Declared, type Lints, sendersOf } from './lints.js';

/** The plan of every tenant that has no other stands under this name. */
const anyTenant = '*';
const mostListed = 50;

/** The plan of each tenant, and tenants with settings of their own: the options have the settings without names. */
function namedFlows({ flowControl: { plans, tenants, flows } }: Declared) {
  return {
    plans: Object.keys(Object(plans)),
    tenants: new Map(Object.entries(Object(tenants)).map(([tenant, plan]) => [tenant, String(plan)])),
    flows: Object.keys(Object(flows)),
  };
}

/** Budgets count in each process, and a restart forgets them, unless the file says otherwise. */
function* budgetLints({ constraints, budgets }: GatewayConfig): Lints {
  if (budgetsIn(constraints) === undefined) return;
  yield 'budgets hold in each replica and worker: with two of them tenants may spend twice as much';
  if (budgets?.file === undefined) yield 'a restart forgets what tenants have spent: there is no budgets.file';
}

export function* tenantLints(config: GatewayConfig, { bands }: Resolved, declared: Declared): Lints {
  yield* budgetLints(config);
  const { plans, tenants, flows } = namedFlows(declared);
  const had = new Set(tenants.values());
  for (const plan of plans) if (!had.has(plan)) yield `no tenant has the plan ${plan} (flowControl.tenants)`;
  const senders = sendersOf(config.auth);
  // A trusted sender names any tenant, and any objective.
  if (senders.some(({ trusted }) => trusted)) return;
  const known = [...new Set(senders.map(({ tenant }) => tenant))];
  const isLost = (tenant: string): boolean => tenant !== anyTenant && !known.includes(tenant);
  for (const [tenant, plan] of tenants)
    if (isLost(tenant)) yield `${tenant} has the plan ${plan}, but ${nobodyIs(tenant, known)}`;
  for (const tenant of flows)
    if (isLost(tenant)) yield `${tenant} has settings in flowControl.flows, but ${nobodyIs(tenant, known)}`;
  const priorities = new Set([0, ...senders.map(({ priority }) => priority)]);
  for (const { priority } of bands)
    if (!priorities.has(priority)) yield `no sender has the priority ${priority}: its band stays empty`;
}

const nobodyIs = (tenant: string, known: readonly string[]): string =>
  `no key has it as tenant${didYouMean(tenant, known)}`;

export function effectiveTenants(config: GatewayConfig, options: Resolved, declared: Declared): Effective {
  const { tenants, flows } = namedFlows(declared);
  const senders = sendersOf(config.auth);
  const all = new Set([...senders.map(({ tenant }) => tenant), ...tenants.keys(), ...flows]);
  const names = [...all].filter((name) => name !== anyTenant);
  const entries = names.slice(0, mostListed).map((tenant) => {
    const own = senders.filter((sender) => sender.tenant === tenant);
    const plan = flows.includes(tenant) ? undefined : (tenants.get(tenant) ?? tenants.get(anyTenant));
    const spends = budgetsIn(config.constraints)?.budgetsOf(tenant, 0).map(budgetOf) ?? [];
    const parts = [comesBy(own), plan !== undefined && `plan ${plan}`, settingsOf(options, tenant), ...spends];
    return [tenant, joined('; ', parts)] as const;
  });
  const rest = names.length - entries.length;
  return { section: 'Tenants', entries: rest > 0 ? [...entries, ['and more', String(rest)]] : entries };
}

/** `2 keys, priority 100`. */
function comesBy(senders: readonly SenderConfig[]): string {
  const keys = senders.filter((sender) => 'key' in sender).length;
  const priorities = [...new Set(senders.map(({ priority }) => priority))];
  return joined(', ', [
    keys > 0 && `${keys} ${keys === 1 ? 'key' : 'keys'}`,
    keys < senders.length && 'comes without a key',
    senders.length === 0 ? 'no key' : `priority ${priorities.join(' or ')}`,
    senders.some(({ trusted }) => trusted) && 'trusted',
  ]);
}

/** `team acme: 200,000 tokens per 1m`. */
function budgetOf({ group, unit, limit, calendar, perMs }: QuotaFigure): string {
  return `${group}: ${quantity(limit)} ${unit} per ${calendar ?? ms(perMs)}`;
}

function settingsOf({ flows }: Resolved, tenant: string): string | undefined {
  const profile = flows.get(tenant);
  if (profile === undefined) return undefined;
  const { weight, limits, maxInFlight } = profile;
  return joined('; ', [
    `weight ${weight}`,
    maxInFlight && atATime(maxInFlight),
    limits && `${quantity(limits.maxRequests)} requests, ${bytes(limits.maxBytes)} may wait in each band`,
  ]);
}
