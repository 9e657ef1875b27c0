import { describe, expect, it } from 'vitest';
import { GuardedSelector, type PickedBand } from '../../../src/tiers/2-fairness/guarded-selector.js';
import type { FlowView } from '../../../src/types/index.js';
import { fakeItem } from '../../support/fake-item.js';

const flow: FlowView = { fairnessId: 'a', priority: 0, weight: 1, waiting: 1, waitingBytes: 1, head: undefined };
const item = fakeItem();
const usage = { promptTokens: 1, completionTokens: 2 };
const total = { promptTokens: 3, completionTokens: 4 };

const band: PickedBand = {
  priority: 0,
  waiting: 1,
  waitingBytes: 1,
  firstActive: flow,
  activeFlows: () => [flow],
  isActiveFlow: (candidate): candidate is FlowView => candidate === flow,
  tellOfWaiting: () => {},
};

const throwing = (): never => {
  throw new Error('broken');
};

function guard(methods: Record<string, unknown> | (() => unknown), policy: Record<string, unknown> = {}) {
  const createSelector = typeof methods === 'function' ? methods : () => ({ pick: () => flow, ...methods });
  return guardPolicy({ type: 'x', createSelector, ...policy });
}

function guardPolicy(policy: object) {
  const faults: string[] = [];
  const errors = {
    pluginFailed: (kind: string, type: string, error: unknown) => void faults.push(`${kind} ${type}: ${String(error)}`),
  };
  return { selector: new GuardedSelector(policy as never, band, errors), faults };
}

const tellings: readonly [method: string, tell: (selector: GuardedSelector) => void, heard: unknown[]][] = [
  ['flowActivated', (selector) => selector.flowActivated(flow), [flow]],
  ['flowDeactivated', (selector) => selector.flowDeactivated(flow), [flow, false]],
  ['flowDeactivated', (selector) => selector.flowDeactivated(flow, true), [flow, true]],
  ['itemAdded', (selector) => selector.itemAdded(flow, item), [flow, item]],
  ['itemRemoved', (selector) => selector.itemRemoved(flow, item), [flow, item]],
  ['dispatched', (selector) => selector.dispatched(flow, item, 7), [flow, item, 7]],
  ['consumed', (selector) => selector.consumed(flow, usage, 7, item, total), [flow, usage, 7, item, total]],
  [
    'settled',
    (selector) => selector.settled(flow, usage, 7, 9, item, 'released'),
    [flow, usage, 7, 9, item, 'released'],
  ],
  ['flowRemoved', (selector) => selector.flowRemoved(flow), [flow]],
];

describe('what a selector is told', () => {
  it.each(tellings)('%s: reaches it, and its failure goes no further', async (method, tell, heard) => {
    const told: unknown[][] = [];
    const listening = guard({ [method]: (...news: unknown[]) => void told.push(news) });
    tell(listening.selector);
    expect([told, listening.faults]).toEqual([[heard], []]);
    const failing = guard({ [method]: throwing });
    tell(failing.selector);
    expect(failing.faults).toEqual(['fairness x: Error: broken']);
    const late = guard({ [method]: () => Promise.reject(new Error('late')) });
    tell(late.selector);
    await new Promise(setImmediate);
    expect(late.faults).toEqual(['fairness x: Error: late']);
    const deaf = guard({});
    tell(deaf.selector);
    expect(deaf.faults).toEqual([]);
  });

  it.each([
    [{}, false, false],
    [{ dispatched: () => {} }, true, false],
    [{ settled: () => {} }, false, true],
    [{ consumed: () => {} }, false, true],
  ])('is known beforehand: %o', (methods, hearsDispatches, hearsSettlements) => {
    const { selector } = guard(methods);
    expect([selector.hearsDispatches, selector.hearsSettlements]).toEqual([hearsDispatches, hearsSettlements]);
  });
});

describe('a choice', () => {
  it('is a flow of the band that is active', () => {
    const { selector, faults } = guard({});
    expect([selector.pick(0), faults]).toEqual([flow, []]);
  });

  it.each([[undefined], [{ ...flow }], ['a']])('is nobody for %j, which is reported', (choice) => {
    const { selector, faults } = guard({ pick: () => choice });
    expect(selector.pick(0)).toBeUndefined();
    expect(faults).toEqual([expect.stringContaining('TypeError: pick must return an active flow of this band; got')]);
  });

  it('is nobody when the policy throws', () => {
    const { selector, faults } = guard({ pick: throwing });
    expect([selector.pick(0), faults]).toEqual([undefined, ['fairness x: Error: broken']]);
  });
});

describe('a policy that makes no selector', () => {
  it.each([
    ['answers nothing', () => undefined, 'createSelector must return an object with a pick method; got undefined'],
    [
      'answers an object without a choice',
      () => ({ pick: 'first' }),
      'createSelector must return an object with a pick method; got',
    ],
    ['throws', throwing, 'Error: broken'],
  ])('%s: is reported, and picks nobody', (_name, createSelector, fault) => {
    const { selector, faults } = guard(createSelector);
    expect(faults).toEqual([expect.stringContaining(fault)]);
    expect(selector.pick(0)).toBeUndefined();
    expect([selector.hearsDispatches, selector.hearsSettlements, selector.keepsAccount]).toEqual([false, false, false]);
  });
});

it('a method whose name is nearly right is told of', () => {
  const { faults } = guard({ flowActivate: () => {} });
  expect(faults).toEqual([
    'fairness x: TypeError: the selector has a method "flowActivate" that is never called: the name is "flowActivated"',
  ]);
});

it('a method that cannot be read costs its call, and neither the choice nor the next call', () => {
  let isBroken = true;
  const told: unknown[] = [];
  const settled = (flow: unknown): void => void told.push(flow);
  const methods = Object.defineProperty({ pick: () => flow }, 'settled', {
    get: () => (isBroken ? throwing() : settled),
  });
  const { selector, faults } = guard(() => methods);
  expect([selector.pick(0), selector.hearsSettlements]).toEqual([flow, true]);
  selector.settled(flow, usage, 7, 9, item, 'released');
  isBroken = false;
  selector.settled(flow, usage, 7, 9, item, 'released');
  expect(told).toEqual([flow]);
  expect(faults).toEqual(['fairness x: Error: broken', 'fairness x: Error: broken']);
});

const nothing = { settled: 0, received: 0, owed: 0 };
const figures = { windowMs: 5, fairnessIndex: 1, flows: [{ fairnessId: 'a', ...nothing }], others: nothing };

/** Figures that a policy may keep: how they are asked for, and what stands in for a wrong answer. */
const accounts: readonly [
  name: string,
  ask: (selector: GuardedSelector) => unknown,
  right: unknown,
  fallback: unknown,
  rule: string,
][] = [
  ['lead', (selector) => selector.lead(flow), -5, undefined, 'lead must return a number, or undefined'],
  ['ignoredReports', (selector) => selector.ignoredReports, 3, 0, 'ignoredReports must be a number'],
];

describe.each(accounts)('%s', (name, ask, right, fallback, rule) => {
  const given = (answer: unknown) => guard({ [name]: name === 'lead' ? () => answer : answer });

  it('is what the policy says, and nothing where it says nothing', () => {
    expect([ask(given(right).selector), ask(given(undefined).selector), ask(guard({}).selector)]).toEqual([
      right,
      fallback,
      fallback,
    ]);
    expect(given(undefined).faults).toEqual([]);
  });

  it.each([['much'], [Number.NaN], [null]])('that is %j is reported', (answer) => {
    const { selector, faults } = given(answer);
    expect(ask(selector)).toBe(fallback);
    expect(faults).toEqual([expect.stringContaining(`TypeError: ${rule}; got`)]);
  });

  it('that cannot be had is reported', () => {
    const { selector: guarded, faults } = guard(() =>
      name === 'lead'
        ? { pick: () => flow, lead: throwing }
        : Object.defineProperty({ pick: () => flow }, name, { get: throwing }),
    );
    expect(ask(guarded)).toBe(fallback);
    expect(faults).toEqual(['fairness x: Error: broken']);
  });
});

describe('how evenly a policy serves', () => {
  it.each([
    [undefined, undefined, 0],
    [0.5, 0.5, 0],
    [Number.NaN, undefined, 1],
    ['even', undefined, 1],
  ])('is %j: %j', (answer, index, count) => {
    const { selector, faults } = guard({}, { fairnessIndex: answer });
    expect([selector.fairnessIndex, faults.length]).toEqual([index, count]);
    if (count > 0) expect(faults[0]).toContain('fairnessIndex must be a number, or undefined');
  });

  it('is unknown when it cannot be had', () => {
    const policy = { type: 'x', createSelector: () => ({ pick: () => flow }) };
    const { selector, faults } = guardPolicy(Object.defineProperty(policy, 'fairnessIndex', { get: throwing }));
    expect([selector.fairnessIndex, faults]).toEqual([undefined, ['fairness x: Error: broken']]);
  });
});

describe('an account of service', () => {
  it('is kept by a policy that has one', () => {
    const { selector } = guard({ service: () => figures });
    expect([selector.keepsAccount, guard({}).selector.keepsAccount, guard({}).selector.service(0)]).toEqual([
      true,
      false,
      undefined,
    ]);
    expect(selector.service(0)).toEqual(figures);
  });

  it.each([
    [undefined],
    [null],
    ['figures'],
    [{ ...figures, flows: undefined }],
    [{ ...figures, windowMs: Number.NaN }],
    [{ ...figures, fairnessIndex: '1' }],
    [{ ...figures, flows: [{ ...nothing, fairnessId: 1 }] }],
    [{ ...figures, flows: [{ fairnessId: 'a', settled: 0, received: 0 }] }],
    [{ ...figures, others: { settled: 0, received: 0 } }],
  ])('that is %j is reported', (answer) => {
    const { selector, faults } = guard({ service: () => answer });
    expect(selector.service(0)).toBeUndefined();
    expect(faults).toEqual([
      expect.stringContaining('service must return figures whose flows have a fairnessId, and numbers; got'),
    ]);
  });

  it('that cannot be had is reported', () => {
    const { selector, faults } = guard({ service: throwing });
    expect([selector.service(0), faults]).toEqual([undefined, ['fairness x: Error: broken']]);
  });
});
