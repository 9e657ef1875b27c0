/**
 * Settings as the part of an address after `#`, and back. What an address says wrongly is put right: a link never
 * breaks the page.
 */
import { candidates, faultRanges, withFaults } from './faults.ts';
import { scenes } from './scenes.ts';
import {
  type Fault,
  type FaultKind,
  fairnessPolicies,
  faultKinds,
  mostTenants,
  orderingPolicies,
  type Range,
  ranges,
  type Settings,
  type TenantSettings,
  tenantRanges,
} from './settings.ts';

const standard = (scenes[0] as (typeof scenes)[number]).settings;
const numbers = Object.keys(ranges) as (keyof typeof ranges)[];

export function toLink(settings: Settings): string {
  const link = new URLSearchParams();
  for (const { name, rate, prompt, answer, priority } of settings.tenants)
    link.append('t', [name, rate, prompt, answer, priority].join(' '));
  for (const name of numbers) if (settings[name] !== standard[name]) link.set(name, String(settings[name]));
  for (const name of ['fairness', 'ordering'] as const)
    if (settings[name] !== standard[name]) link.set(name, settings[name]);
  for (const { kind, of, at, for: lengthS } of settings.faults) link.append('f', [kind, of, at, lengthS].join(' '));
  if (settings.evicts) link.set('evicts', '1');
  return `#${link}`;
}

/** The standard scene where the address says nothing. */
export function fromLink(hash: string): Settings {
  const link = new URLSearchParams(hash.replace(/^#/, ''));
  const tenants = distinct(link.getAll('t').map(tenantOf)).slice(0, mostTenants);
  const read = (name: keyof typeof ranges): number => within(link.get(name), ranges[name], standard[name]);
  const given = Object.fromEntries(numbers.map((name) => [name, read(name)])) as Record<keyof typeof ranges, number>;
  const settings = {
    ...standard,
    ...given,
    tenants: tenants.length === 0 ? standard.tenants : tenants,
    fairness: oneOf(fairnessPolicies, link.get('fairness'), standard.fairness),
    ordering: oneOf(orderingPolicies, link.get('ordering'), standard.ordering),
    evicts: link.get('evicts') === '1',
  };
  return withFaults(
    settings,
    link.getAll('f').flatMap((text) => faultOf(text, settings)),
  );
}

/** A name that needs no quotes in code, YAML and links. */
export function plainName(name: string | undefined, index: number): string {
  return (
    name
      ?.toLowerCase()
      .replaceAll(/[^a-z0-9-]/g, '')
      .replace(/^[^a-z]+/, '')
      .slice(0, 16) || `tenant-${index + 1}`
  );
}

function tenantOf(text: string, index: number): TenantSettings {
  const [name, rate, prompt, answer, priority] = text.split(' ');
  return {
    name: plainName(name, index),
    rate: within(rate, tenantRanges.rate, 1),
    prompt: within(prompt, tenantRanges.prompt, 300),
    answer: within(answer, tenantRanges.answer, 100),
    priority: within(priority, tenantRanges.priority, 0),
  };
}

/** None where the kind is unknown. */
function faultOf(text: string, settings: Settings): Fault[] {
  const [kind = '', of, at, lengthS] = text.split(' ');
  if (!Object.hasOwn(faultKinds, kind)) return [];
  const known = kind as FaultKind;
  return [
    {
      kind: known,
      of: within(of, { label: '', min: 1, max: candidates(known, settings), step: 1 }, 1),
      at: within(at, faultRanges.at, 20),
      for: within(lengthS, faultRanges.for, 20),
    },
  ];
}

function within(text: string | null | undefined, { min, max, step }: Range, otherwise: number): number {
  const value = Number(text ?? Number.NaN);
  if (text === '' || !Number.isFinite(value)) return otherwise;
  return Math.min(max, Math.max(min, min + Math.round((value - min) / step) * step));
}

function oneOf<T extends object>(known: T, text: string | null, otherwise: keyof T): keyof T {
  return text !== null && Object.hasOwn(known, text) ? (text as keyof T) : otherwise;
}

function distinct(tenants: readonly TenantSettings[]): TenantSettings[] {
  return tenants.filter(({ name }, index) => tenants.findIndex((other) => other.name === name) === index);
}
