/** Replicas that spend one tenant's budget of tokens in chunks, in virtual time on a store of this process. */
import { seededRandom } from '../../../src/base/seeded-random.js';
import { localStore, type SharedBudgetAdmission, sharedBudgetAdmission } from '../../../src/redis/index.js';
import { ManualClock } from '../../../src/testing/index.js';
import { turns } from '../../support/flow.js';
import { calm } from '../topologies/every-part.js';

interface Request {
  readonly tokens: number;
}

export interface Plan {
  readonly replicas: number;
  /** Tokens a minute. */
  readonly limit: number;
  readonly burst: number;
  readonly estimate: number;
  readonly used: number;
  readonly perSecond: number;
  readonly requestMs: number;
  readonly lastsMs: number;
}

export interface Spent {
  /** The most by which what was used ever exceeded burst + rate · span. */
  readonly mostOver: number;
  /** The part of the rate that was used in the second half. */
  readonly utilization: number;
}

const stepMs = 10;
const key = { fairnessId: 'tenant', priority: 0 };

export async function spend(plan: Plan): Promise<Spent> {
  const { replicas: count, limit, burst, estimate, used, perSecond, requestMs, lastsMs } = plan;
  const clock = new ManualClock();
  const random = seededRandom(3);
  const store = localStore({ clock });
  const perMs = limit / 60_000;
  const budgets = [{ name: 'tokens', limit, burst, cost: 'tokens' }] as const;
  const replicas = Array.from({ length: count }, () =>
    sharedBudgetAdmission<Request>(store, { name: 'chunks', budgets, replicas: count, clock, random }),
  );
  let level = 0;
  let mostOver = 0;
  let spent = 0;

  function ask(policy: SharedBudgetAdmission<Request>, atMs: number): void {
    const request = { tokens: estimate };
    if (policy.admit(request, key, calm) !== 'admit') return;
    level += used;
    mostOver = Math.max(mostOver, level - burst);
    if (atMs >= lastsMs / 2) spent += used;
    clock.setTimeout(
      () => policy.released?.(request, key, { promptTokens: used, completionTokens: 0 }, clock.now()),
      requestMs * (0.5 + random()),
    );
  }

  let due = 0;
  for (let atMs = 0; atMs < lastsMs; atMs += stepMs) {
    level = Math.max(0, level - perMs * stepMs);
    for (due += (perSecond * stepMs) / 1_000; due >= 1; due--)
      ask(replicas[Math.floor(random() * count)] as SharedBudgetAdmission<Request>, atMs);
    for (let turn = 0; turn < 3; turn++) await turns();
    clock.advance(stepMs);
  }
  await Promise.all(replicas.map((policy) => policy.close()));
  return { mostOver, utilization: spent / ((perMs * lastsMs) / 2) };
}
