import { describe, expect, it } from 'vitest';
import { readBy } from '../../../src/base/schema/element.js';
import { mostBudgetLeftPlugin } from '../../../src/constraints/quotas/most-budget-left.js';
import {
  type EndpointView,
  FlowConfigError,
  type ItemView,
  mostBudgetLeft,
  quotaDetector,
} from '../../../src/index.js';
import { fakeItem } from '../../support/fake-item.js';
import { fakeEndpoint } from '../../support/fake-pool.js';

/** Endpoints with `[left, requests in flight]`, and the one that is picked. */
function picked(...figures: [left: number, inFlightRequests?: number][]): string | undefined {
  const endpoints = figures.map(([, inFlightRequests = 0], index) => fakeEndpoint(`k${index}`, { inFlightRequests }));
  const left = new Map(endpoints.map((endpoint, index) => [endpoint as EndpointView, figures[index]?.[0] ?? 0]));
  const picker = mostBudgetLeft({ budgetLeft: (endpoint) => left.get(endpoint) as number });
  return picker.pick(endpoints, fakeItem(), 5)?.id;
}

describe('mostBudgetLeft', () => {
  it('picks the endpoint with most left, wherever it stands', () => {
    expect([picked([0.5], [0.9], [0.7]), picked([0.9], [0.5]), picked([0.1], [0.2])]).toEqual(['k1', 'k0', 'k1']);
  });

  it('picks among endpoints of which nothing is left, too, and nobody where there is none', () => {
    expect([picked([0], [0]), picked([0, 3], [0, 2]), picked()]).toEqual(['k0', 'k1', undefined]);
  });

  it('picks the less loaded of those with equally much left, and the first of those that are loaded alike', () => {
    expect([picked([0.5, 2], [0.5, 1]), picked([0.5, 1], [0.5, 2]), picked([0.5, 1], [0.5, 1])]).toEqual([
      'k1',
      'k0',
      'k0',
    ]);
    expect([picked([0.5, 0], [0.6, 9]), picked([0.6, 9], [0.5, 0])]).toEqual(['k1', 'k0']);
  });

  it('asks for the very request, at the instant of the pick', () => {
    const asked: [string, ItemView, number][] = [];
    const item = fakeItem();
    const picker = mostBudgetLeft({ budgetLeft: ({ id }, of, nowMs) => asked.push([id, of, nowMs]) });
    picker.pick([fakeEndpoint('k0')], item, 7);
    expect([picker.type, asked]).toEqual(['most-budget-left-picker', [['k0', item, 7]]]);
  });
});

describe('mostBudgetLeft in a file', () => {
  const create = (detector: string | undefined, found: unknown) => {
    const asked: string[] = [];
    const make = () =>
      mostBudgetLeftPlugin.create(detector === undefined ? {} : { detector }, {
        resolve: (kind: string, name: string) => {
          asked.push(`${kind} ${name}`);
          return found as never;
        },
      });
    return { asked, make };
  };

  it('goes by the quota detector of that name, or by the one that is called so', () => {
    const detector = quotaDetector({ groups: [{ by: 'endpoint', quotas: [{ unit: 'requests', limit: 1 }] }] });
    const [named, unnamed] = [create('keys', detector), create(undefined, detector)];
    expect([named.make().type, unnamed.make().type]).toEqual(Array(2).fill('most-budget-left-picker'));
    expect([named.asked, unnamed.asked]).toEqual([['constraint keys'], ['constraint quota-detector']]);
  });

  it('says that another detector knows no budgets', () => {
    const { make } = create('seats', { type: 'concurrency-detector', saturation: () => 0 });
    expect(make).toThrow(FlowConfigError);
    expect(make).toThrow(
      'most-budget-left-picker: detector: expected the name of a quota detector; got a concurrency-detector',
    );
  });

  it('takes nothing but the name', () => {
    const reports: string[] = [];
    readBy(mostBudgetLeftPlugin.parameters, { detector: 7 }, (expected) => void reports.push(expected));
    expect(reports).toEqual(['the name of a quota detector']);
  });
});
