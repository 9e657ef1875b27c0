import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { tenantBudgets } from '../../src/admission/tenant-budgets.js';
import { tokenBucket } from '../../src/admission/token-bucket.js';
import { defaultRegistry } from '../../src/index.js';
import { admissionView } from '../support/pools.js';
import { refusalOf, scripted, sheddable, standard } from './support.js';

const view = admissionView();

describe('tenantBudgets', () => {
  it('rejects sheddable requests of a tenant that holds its share', () => {
    const policy = tenantBudgets({ budgets: { alice: 0.3 }, capacity: 10 });
    for (let i = 0; i < 3; i++) expect(policy.admit({}, sheddable, view)).toBe('admit');
    expect(refusalOf(policy.admit({}, sheddable, view)).reason).toBe(
      'the tenant holds 3 requests, and its budget is 3',
    );
    policy.released?.({}, sheddable, undefined);
    expect(policy.admit({}, sheddable, view)).toBe('admit');
    expect(policy.held('alice')).toBe(3);
  });

  it('counts requests that are not sheddable, and never rejects them', () => {
    const policy = tenantBudgets({ budgets: { alice: 0.1 }, capacity: 10 });
    for (let i = 0; i < 5; i++) expect(policy.admit({}, standard, view)).toBe('admit');
    expect(policy.held('alice')).toBe(5);
    expect(refusalOf(policy.admit({}, sheddable, view))).toBeDefined();
  });

  it('leaves tenants without a budget alone, and keeps nothing about them', () => {
    const policy = tenantBudgets({ budgets: { alice: 0 }, capacity: 10 });
    const key = { fairnessId: 'bob', priority: -1 };
    for (let i = 0; i < 20; i++) expect(policy.admit({}, key, view)).toBe('admit');
    expect(policy.held('bob')).toBe(0);
    expect(policy.admit({}, { fairnessId: 'constructor', priority: -1 }, view)).toBe('admit');
  });

  it('lets nobody in on a budget of 0, and one request on any other', () => {
    expect(refusalOf(tenantBudgets({ budgets: { alice: 0 }, capacity: 10 }).admit({}, sheddable, view))).toBeDefined();
    const small = tenantBudgets({ budgets: { alice: 0.01 }, capacity: 10 });
    expect(small.admit({}, sheddable, view)).toBe('admit');
    expect(refusalOf(small.admit({}, sheddable, view))).toBeDefined();
  });

  it('does not stumble over the rounding of shares', () => {
    const policy = tenantBudgets({ budgets: { alice: 0.07 }, capacity: 100 });
    for (let i = 0; i < 7; i++) expect(policy.admit({}, sheddable, view)).toBe('admit');
    expect(refusalOf(policy.admit({}, sheddable, view))).toBeDefined();
  });

  it("rejects only above the budget with the simulator's counting", () => {
    const policy = tenantBudgets({ budgets: { alice: 0.25 }, capacity: 10, counting: 'blis' });
    for (let i = 0; i < 3; i++) expect(policy.admit({}, sheddable, view)).toBe('admit');
    expect(refusalOf(policy.admit({}, sheddable, view))).toBeDefined();
  });

  it("lets one request more in than a budget of whole requests with the simulator's counting", () => {
    const policy = tenantBudgets({ budgets: { alice: 0.3 }, capacity: 10, counting: 'blis' });
    for (let i = 0; i < 4; i++) expect(policy.admit({}, sheddable, view)).toBe('admit');
    expect(refusalOf(policy.admit({}, sheddable, view)).reason).toBe(
      'the tenant holds 4 requests, and its budget is 3',
    );
  });

  it('never counts below nothing', () => {
    const policy = tenantBudgets({ budgets: { alice: 0.1 }, capacity: 10 });
    policy.released?.({}, sheddable, undefined);
    policy.admit({}, sheddable, view);
    expect(policy.held('alice')).toBe(1);
  });

  it('does not ask the inner policy for what it rejects itself', () => {
    const inner = scripted('inner', 'admit');
    const policy = tenantBudgets({ budgets: { alice: 0 }, capacity: 10 }, inner);
    refusalOf(policy.admit({}, sheddable, view));
    expect(inner.log).toEqual([]);
    policy.admit({}, standard, view);
    policy.released?.({}, standard, { promptTokens: 1, completionTokens: 2 });
    expect(inner.log).toEqual(['inner asked', 'inner released with 3 tokens']);
  });

  it("passes the inner policy's refusal on under its name, and books nothing for it", () => {
    const policy = tenantBudgets(
      { budgets: { alice: 0.5 }, capacity: 10 },
      scripted('inner', { reason: 'no', cause: 'overloaded' }),
    );
    expect(policy.admit({}, standard, view)).toEqual({ reason: 'no', cause: 'overloaded', policy: 'inner' });
    expect(policy.held('alice')).toBe(0);
  });

  it('keeps a name that the inner refusal has already', () => {
    const policy = tenantBudgets(
      { budgets: {}, capacity: 10 },
      scripted('inner', { reason: 'no', policy: 'innermost' }),
    );
    expect(policy.admit({}, standard, view)).toEqual({ reason: 'no', policy: 'innermost' });
  });

  it('tells the inner policy of an end also where the tenant has no budget, and does without its hook', () => {
    const told: unknown[] = [];
    const inner = {
      type: 'inner',
      admit: () => 'admit' as const,
      released: (...given: unknown[]) => void told.push(given),
    };
    tenantBudgets({ budgets: {}, capacity: 10 }, inner).released?.('request', standard, undefined, 60);
    expect(told).toEqual([['request', standard, undefined, 60]]);
    const silent = { type: 'silent', admit: () => 'admit' as const };
    expect(() =>
      tenantBudgets({ budgets: {}, capacity: 10 }, silent).released?.({}, standard, undefined),
    ).not.toThrow();
  });

  it('keeps its books when the inner policy throws, which admits', () => {
    const policy = tenantBudgets({ budgets: { alice: 0.5 }, capacity: 10 }, scripted('inner', new Error('broken')));
    expect(() => policy.admit({}, standard, view)).toThrow('broken');
    expect(policy.held('alice')).toBe(1);
  });

  it('rejects a capacity of 0, which nobody could have a part of', () => {
    for (const capacity of [0, -1])
      expect(() => tenantBudgets({ budgets: {}, capacity })).toThrow(/^tenantBudgets: capacity: expected/);
  });

  it('rejects wrong options, and an inner policy that is none', () => {
    expect(() => tenantBudgets({ budgets: { alice: 1.5, bob: Number.NaN }, capacity: 0 })).toThrow(
      'tenantBudgets: 3 problems',
    );
    expect(() => tenantBudgets({ budgets: {}, capacity: 1 }, {} as never)).toThrow(
      /^tenantBudgets: [\s\S]*inner\.admit/,
    );
  });

  it('is known to configuration files', () => {
    expect(defaultRegistry().create('tenant-budgets', { budgets: { alice: 0.5 }, capacity: 10 }).type).toBe(
      'tenant-budgets',
    );
    expect(() => defaultRegistry().create('tenant-budgets', { budgets: { alice: 2 } })).toThrow(
      'parameters.budgets.alice',
    );
  });

  it('holds what was admitted and not given back, whatever happens', () => {
    const step = fc.record({
      tenant: fc.constantFrom('a', 'b', 'c'),
      priority: fc.constantFrom(-1, 1),
      releases: fc.boolean(),
    });
    void fc.assert(
      fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
        const inner = tokenBucket({ capacity: 20, refillPerSecond: 1, cost: () => 1 });
        const policy = tenantBudgets({ budgets: { a: 0.2, b: 0.4 }, capacity: 10 }, inner);
        const held = { a: [], b: [], c: [] } as Record<string, number[]>;
        for (const { tenant, priority, releases } of steps) {
          const mine = held[tenant] as number[];
          const [oldest] = mine;
          if (releases && oldest !== undefined) {
            policy.released?.({}, { fairnessId: tenant, priority: mine.shift() as number }, undefined);
          } else if (policy.admit({}, { fairnessId: tenant, priority }, view) === 'admit') mine.push(priority);
          expect(policy.held('a')).toBe(held.a?.length);
          expect(policy.held('b')).toBe(held.b?.length);
          expect(inner.tokens).toBe(20 - Object.values(held).flat().length);
        }
      }),
    );
  });
});
