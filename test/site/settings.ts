/**
 * Settings of the playground to test with: the scenes, each way to set the policies, and some at random that are always
 * the same.
 */
import fc from 'fast-check';
import { faultRanges, mostFaults, withFaults } from '../../site/playground/faults.js';
import { scenes } from '../../site/playground/scenes.js';
import {
  type Fault,
  type FaultKind,
  fairnessPolicies,
  faultKinds,
  orderingPolicies,
  type Range,
  ranges,
  type Settings,
  type TenantSettings,
  tenantRanges,
} from '../../site/playground/settings.js';

/** A control is no fault: it would be seen as a violation, which is a test of its own. */
const kinds = (Object.keys(faultKinds) as FaultKind[]).filter((kind) => kind !== 'miscount');

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
  replicas: 2,
  budget: 60_000,
  kvCache: 60_000,
  prefill: 8000,
  faults: [
    { kind: 'slow', of: 1, at: 5, for: 20 },
    { kind: 'outage', of: 1, at: 10, for: 3 },
    { kind: 'cut', of: 1, at: 12, for: 12 },
    { kind: 'flood', of: 2, at: 20, for: 15 },
    { kind: 'reload', of: 1, at: 22, for: 9 },
  ],
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

const fault: fc.Arbitrary<Fault> = fc
  .record({ kind: fc.constantFrom(...kinds), of: fc.integer({ min: 1, max: 6 }), times: placesOf(faultRanges) })
  .map(({ times, ...others }) => ({ ...others, ...times }));

const settings: fc.Arbitrary<Settings> = fc
  .record({
    numbers: placesOf(ranges),
    tenants,
    faults: fc.array(fault, { maxLength: mostFaults }),
    evicts: fc.boolean(),
    fairness: fc.constantFrom(...(Object.keys(fairnessPolicies) as Settings['fairness'][])),
    ordering: fc.constantFrom(...(Object.keys(orderingPolicies) as Settings['ordering'][])),
  })
  .map(({ numbers, ...others }) => withFaults({ ...numbers, ...others }));

export const variants: readonly (readonly [string, Settings])[] = [
  ...scenes.map(({ title, settings }) => [title, settings] as const),
  ['everything', everything],
  ...Object.keys(fairnessPolicies).map((name) => [name, { ...noisy, fairness: name as Settings['fairness'] }] as const),
  ...Object.keys(orderingPolicies).map((name) => [name, { ...noisy, ordering: name as Settings['ordering'] }] as const),
  ...fc.sample(settings, { seed: 1, numRuns: 5 }).map((random, index) => [`at random ${index + 1}`, random] as const),
];
