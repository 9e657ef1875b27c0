/**
 * Settings of the playground to test with: the scenes, each way to set the policies, and some at random that are always
 * the same.
 */
import fc from 'fast-check';
import { scenes } from '../../site/playground/scenes.js';
import {
  fairnessPolicies,
  orderingPolicies,
  type Range,
  ranges,
  type Settings,
  type TenantSettings,
  tenantRanges,
} from '../../site/playground/settings.js';

const noisy = (scenes[0] as (typeof scenes)[number]).settings;

const everything: Settings = {
  ...noisy,
  tenantQueue: 50,
  requestQuota: 600,
  tokenQuota: 200_000,
  ttl: 10,
  ceiling: 40,
  evicts: true,
  servers: 1,
  slow: 1,
  ordering: 'edf-ordering-policy',
};

/** Every place that a slider can have. */
const placeOf = ({ min, max, step }: Range): fc.Arbitrary<number> =>
  fc.integer({ min: 0, max: Math.floor((max - min) / step) }).map((steps) => min + steps * step);

function placesOf<Name extends string>(of: Readonly<Record<Name, Range>>): fc.Arbitrary<Record<Name, number>> {
  const names = Object.keys(of) as Name[];
  return fc
    .tuple(...names.map((name) => placeOf(of[name])))
    .map((places) => Object.fromEntries(names.map((name, index) => [name, places[index]])) as Record<Name, number>);
}

const tenants: fc.Arbitrary<TenantSettings[]> = fc
  .array(placesOf(tenantRanges), { minLength: 1, maxLength: 4 })
  .map((all) => all.map((tenant, index) => ({ ...tenant, name: `tenant-${index + 1}` })));

const settings: fc.Arbitrary<Settings> = fc
  .record({
    numbers: placesOf(ranges),
    tenants,
    evicts: fc.boolean(),
    fairness: fc.constantFrom(...(Object.keys(fairnessPolicies) as Settings['fairness'][])),
    ordering: fc.constantFrom(...(Object.keys(orderingPolicies) as Settings['ordering'][])),
  })
  .map(({ numbers, ...others }) => ({
    ...numbers,
    ...others,
    outage: Math.min(numbers.outage, numbers.servers),
    slow: Math.min(numbers.slow, numbers.servers),
  }));

export const variants: readonly (readonly [string, Settings])[] = [
  ...scenes.map(({ title, settings }) => [title, settings] as const),
  ['everything', everything],
  ...Object.keys(fairnessPolicies).map((name) => [name, { ...noisy, fairness: name as Settings['fairness'] }] as const),
  ...Object.keys(orderingPolicies).map((name) => [name, { ...noisy, ordering: name as Settings['ordering'] }] as const),
  ...fc.sample(settings, { seed: 1, numRuns: 5 }).map((random, index) => [`at random ${index + 1}`, random] as const),
];
