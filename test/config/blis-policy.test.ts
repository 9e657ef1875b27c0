import { describe, expect, it } from 'vitest';
import { loadBlisPolicy } from '../../src/config/index.js';
import { admissionView } from '../support/pools.js';

const busy = admissionView([{ running: 1 }]);

function admits(
  { admission }: ReturnType<typeof loadBlisPolicy>,
  priority: number,
  view = busy,
  fairnessId = 'alice',
): boolean {
  return admission.admit({ tokens: 100 }, { fairnessId, priority }, view) === 'admit';
}

describe('loadBlisPolicy', () => {
  it('admits everybody by default', () => {
    for (const source of ['{}', {}, 'admission: {}', 'admission: { policy: "" }', 'admission:\n']) {
      const policy = loadBlisPolicy(source);
      expect(policy.admission.type).toBe('always-admit');
      expect(policy.warnings).toEqual([]);
    }
  });

  it('makes each of the policies', () => {
    const types = ['always-admit', 'gaie-legacy', 'reject-all', 'tier-shed', 'token-bucket'];
    expect(types.map((policy) => loadBlisPolicy({ admission: { policy } }).admission.type)).toEqual(types);
  });

  it('hands their parameters on', () => {
    const bucket = loadBlisPolicy({
      admission: { policy: 'token-bucket', token_bucket_capacity: 150, token_bucket_refill_rate: 1 },
    });
    expect([admits(bucket, 0), admits(bucket, 0)]).toEqual([true, false]);
    const tiers = loadBlisPolicy({
      admission: { policy: 'tier-shed', tier_shed_threshold: 1, tier_shed_min_priority: -1 },
    });
    const crowded = admissionView([{ running: 2 }]);
    expect([admits(tiers, -2), admits(tiers, -2, crowded), admits(tiers, -1, crowded)]).toEqual([true, false, true]);
    const gaie = loadBlisPolicy({ admission: { policy: 'gaie-legacy', gaie_qd_threshold: 0.5, gaie_kv_threshold: 1 } });
    expect([admits(gaie, -1, admissionView([{ waiting: 1 }])), admits(gaie, -1, admissionView([{ kv: 0.9 }]))]).toEqual(
      [false, true],
    );
  });

  it('lets tier-shed admit from 3 up when the file does not say', () => {
    const policy = loadBlisPolicy('admission: { policy: tier-shed }');
    expect([admits(policy, 3), admits(policy, 2)]).toEqual([true, false]);
  });

  it('gives gaie-legacy its default thresholds, independent of the detector', () => {
    const policy = loadBlisPolicy('admission: { policy: gaie-legacy }');
    const view = admissionView([{ waiting: 5 }], { saturation: 0 });
    expect(admits(policy, -1, view)).toBe(false);
    expect(view.reads).toBe(0);
  });

  it('reads classes and targets, in ms', () => {
    const policy = loadBlisPolicy('admission: { slo_priorities: { gold: 7 }, slo_targets: { gold: 200500 } }');
    expect([policy.sloClasses.priorityOf('gold'), policy.sloClasses.priorityOf('batch')]).toEqual([7, -1]);
    expect([...policy.sloTargetsMs]).toEqual([['gold', 200.5]]);
  });

  it('reads a target before arrival as late on arrival, with a warning', () => {
    const policy = loadBlisPolicy('admission: { slo_targets: { critical: -5 } }');
    expect(policy.sloTargetsMs.get('critical')).toBe(0);
    expect(policy.warnings).toEqual(['admission.slo_targets: requests of "critical" are late when they come (-5 µs)']);
  });

  it('puts tenant budgets before the policy when it knows the capacity', () => {
    const source = 'admission: { policy: reject-all }\ntenant_budgets: { alice: 0 }';
    const policy = loadBlisPolicy(source, { capacity: 10 });
    expect(policy.tenantBudgets).toEqual({ alice: 0 });
    const ask = (fairnessId: string) => policy.admission.admit({}, { fairnessId, priority: -1 }, busy);
    expect(ask('alice')).toEqual({
      reason: 'the tenant holds 0 requests, and its budget is 0',
      policy: 'tenant-budgets',
    });
    expect(ask('bob')).toEqual({ reason: 'every request is rejected', policy: 'reject-all' });
    expect(policy.warnings).toEqual([]);
  });

  it('warns of budgets without a capacity, and of sections that are not its own', () => {
    const policy = loadBlisPolicy('tenant_budgets: { alice: 0.5 }\nrouting: { policy: weighted }\nscheduler: fcfs');
    expect(policy.admission.type).toBe('always-admit');
    expect(policy.warnings).toEqual([
      "sections that are not flow control's are ignored: routing, scheduler",
      'tenant_budgets: ignored, as no capacity was given to take shares of',
    ]);
  });

  it('tells every problem at once', () => {
    const source = `
admission:
  policy: token_bucket
  token_bucket_refill_rate: -1
  gaie_kv_threshold: 1.5
  colour: red
  slo_priorities: { batch: 101 }
tenant_budgets: { alice: 1.5 }
budgets: {}
`;
    let message = '';
    try {
      loadBlisPolicy(source);
    } catch (error) {
      message = String(error);
    }
    expect(message).toMatch(/BLIS policy bundle: 7 problems/);
    expect(message).toContain(
      'admission.policy: expected one of "", "always-admit", "gaie-legacy", "reject-all", "tier-shed", "token-bucket" (did you mean "token-bucket"?); got "token_bucket" (string)',
    );
    for (const path of [
      'admission.token_bucket_refill_rate',
      'admission.gaie_kv_threshold',
      'admission.colour',
      'admission.slo_priorities.batch',
      'tenant_budgets.alice',
      'budgets',
    ]) {
      expect(message).toContain(`\n  ${path}: `);
    }
  });

  it('rejects a bucket that can hold nothing only where it is used', () => {
    expect(() => loadBlisPolicy('admission: { token_bucket_capacity: 0 }')).not.toThrow();
    expect(() => loadBlisPolicy('admission: { policy: token-bucket, token_bucket_capacity: 0 }')).toThrow(
      'admission.token_bucket_capacity: expected a number above 0, as the policy is token-bucket; got 0 (number)',
    );
  });

  it('rejects what is not one object', () => {
    expect(() => loadBlisPolicy('')).toThrow('BLIS policy bundle: expected one object; got an empty text');
    expect(() => loadBlisPolicy('{}\n---\n{}')).toThrow('line 3, column 1: expected one document; got another one');
    expect(() => loadBlisPolicy('- 1')).toThrow('expected one object; got an array of 1');
    expect(() => loadBlisPolicy('a: [')).toThrow('expected valid YAML');
    expect(() => loadBlisPolicy('{}', { capacity: 0 })).toThrow(
      'loadBlisPolicy: capacity: expected an integer from 1 up',
    );
  });
});
