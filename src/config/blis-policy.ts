/** Makes a policy bundle of the BLIS simulator the policies of a gateway. */
import type { output } from 'zod/v4/core';
import { Problems } from '../base/problems.js';
import * as s from '../base/schema/schema.js';
import type { AdmissionPolicy } from '../index.js';
import { alwaysAdmit, gaieLegacy, rejectAll, sloClasses, tenantBudgets, tierShed, tokenBucket } from '../index.js';
import type { SloClasses } from '../types/index.js';
import { readOneObject } from './read-yaml.js';

export interface LoadBlisPolicyOptions {
  /** Requests that the pool can hold, for `tenant_budgets`: endpoints × longest batch. @default none: no budgets */
  capacity?: number | undefined;
}

export interface BlisPolicy {
  /** For the FlowController's option of that name; tenant budgets with a capacity stand before the policy. */
  readonly admission: AdmissionPolicy;
  /** Classes with the overrides of `slo_priorities`; gives a request its priority. */
  readonly sloClasses: SloClasses;
  /** Class → time-to-first-token target, ms, from `slo_targets`; gives a request its `sloTtftMs`. */
  readonly sloTargetsMs: ReadonlyMap<string, number>;
  /** Tenant → share of the capacity. */
  readonly tenantBudgets: Readonly<Record<string, number>>;
  /** Settings that are valid but probably not intended; one sentence each. */
  readonly warnings: readonly string[];
}

const policies = ['always-admit', 'gaie-legacy', 'reject-all', 'tier-shed', 'token-bucket'] as const;

/** Sections of the simulator that say nothing about flow control. */
const otherSections = ['priority', 'routing', 'scheduler'] as const;

const sectionShape = {
  policy: s.optional(s.oneOf('', ...policies)),
  token_bucket_capacity: s.optional(s.atLeastZero()),
  token_bucket_refill_rate: s.optional(s.atLeastZero()),
  tier_shed_threshold: s.optional(s.integer({ from: 0 })),
  tier_shed_min_priority: s.optional(s.integer()),
  gaie_qd_threshold: s.optional(s.aboveZero()),
  gaie_kv_threshold: s.optional(s.ratioAboveZero()),
  slo_priorities: s.optional(s.record(s.integer({ from: -100, to: 100 }))),
  slo_targets: s.optional(s.record(s.integer())),
};

const admissionSection = s.object(sectionShape, (section, report) => {
  if (section.policy !== 'token-bucket') return;
  for (const name of ['token_bucket_capacity', 'token_bucket_refill_rate'] as const)
    if (section[name] === 0) report('a number above 0, as the policy is token-bucket', [name]);
});

const bundleSchema = s.object({
  admission: s.optional(admissionSection),
  tenant_budgets: s.optional(s.record(s.ratio())),
  priority: s.optional(s.anything()),
  routing: s.optional(s.anything()),
  scheduler: s.optional(s.anything()),
} satisfies Record<'admission' | 'tenant_budgets' | (typeof otherSections)[number], unknown>);

const optionsSchema = s.object({ capacity: s.optional(s.positiveInteger()) });

/**
 * Reads one policy bundle, as YAML text or parsed. Keys without a value are absent.
 * Differs from BLIS: values that a policy would reject when it is made are rejected here, with all other problems.
 * @throws FlowConfigError that lists every problem
 * @example
 * const { admission, sloClasses } = loadBlisPolicy(await readFile('policies.yaml', 'utf8'), { capacity: 4 * 256 });
 * const flow = new FlowController({ ...options, admission });
 * await flow.enqueue(request, { fairnessId, priority: sloClasses.priorityOf(sloClass) });
 */
export function loadBlisPolicy(source: string | object, options: LoadBlisPolicyOptions = {}): BlisPolicy {
  const { capacity } = s.parse(optionsSchema, options, 'loadBlisPolicy');
  const problems = new Problems();
  const document = readOneObject(source, problems.sink);
  const bundle = document === undefined ? undefined : problems.check(bundleSchema, document, '');
  if (bundle === undefined) throw problems.toError('BLIS policy bundle');
  const { admission = {}, tenant_budgets: budgets = {} } = bundle;
  const ignored = otherSections.filter((name) => bundle[name] !== undefined);
  if (ignored.length > 0) problems.warn('', `sections that are not flow control's are ignored: ${ignored.join(', ')}`);
  const hasBudgets = Object.keys(budgets).length > 0;
  if (hasBudgets && capacity === undefined)
    problems.warn('tenant_budgets', ': ignored, as no capacity was given to take shares of');
  const policy = admissionPolicy(admission);
  return {
    admission: hasBudgets && capacity !== undefined ? tenantBudgets({ budgets, capacity }, policy) : policy,
    sloClasses: sloClasses({ overrides: admission.slo_priorities }),
    sloTargetsMs: targets(admission.slo_targets ?? {}, problems),
    tenantBudgets: budgets,
    warnings: problems.warnings,
  };
}

function admissionPolicy(given: output<typeof admissionSection>): AdmissionPolicy {
  // Without a minimum in the file, the simulator admits `standard` and above.
  const { tier_shed_threshold: overloadThreshold, tier_shed_min_priority: minAdmitPriority = 3 } = given;
  const { gaie_qd_threshold: queueDepthThreshold = 5, gaie_kv_threshold: kvCacheUtilThreshold = 0.8 } = given;
  switch (given.policy) {
    case 'token-bucket':
      return tokenBucket({ capacity: given.token_bucket_capacity, refillPerSecond: given.token_bucket_refill_rate });
    case 'tier-shed':
      return tierShed({ overloadThreshold, minAdmitPriority });
    case 'gaie-legacy':
      return gaieLegacy({ queueDepthThreshold, kvCacheUtilThreshold });
    case 'reject-all':
      return rejectAll();
    default:
      return alwaysAdmit();
  }
}

/** From µs to ms. A target that lies before the request's arrival is as late as one of 0. */
function targets(slo: Readonly<Record<string, number>>, problems: Problems): Map<string, number> {
  const all = Object.entries(slo);
  for (const [name, us] of all.filter(([, us]) => us <= 0))
    problems.warn('admission.slo_targets', `: requests of ${JSON.stringify(name)} are late when they come (${us} µs)`);
  return new Map(all.map(([name, us]) => [name, Math.max(us, 0) / 1000]));
}
