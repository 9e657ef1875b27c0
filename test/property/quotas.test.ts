/**
 * Random histories of quotas against a naive model, a list of everything that was taken: what a controller lets go fits
 * into every window, and what is used and reserved is what the list says after every step, whatever becomes of
 * requests.
 */
import { describe, expect, it } from 'vitest';
import { EndpointPool, FlowController, type Lease, quotaDetector } from '../../src/index.js';
import { audit, ManualClock } from '../../src/testing/index.js';
import { turns } from '../support/flow.js';
import { Random } from './random.js';

type Unit = 'requests' | 'tokens' | 'outputTokens';
type Amounts = Readonly<Record<Unit, number>>;

interface Limit {
  readonly unit: Unit;
  readonly limit: number;
  readonly per: number;
}

const ofEndpoint: readonly Limit[] = [
  { unit: 'requests', limit: 4, per: 10_000 },
  { unit: 'tokens', limit: 300, per: 10_000 },
];
const ofAccount: readonly Limit[] = [{ unit: 'outputTokens', limit: 400, per: 20_000 }];
const endings = [
  'reports less',
  'reports more',
  'says nothing',
  'was never sent',
  'is wrong',
  'fails',
  'is put off',
] as const;

/**
 * A window as a list; what was taken is free `per` later. What nobody had estimated may exceed the limit, and takes
 * from later windows then.
 */
class NaiveWindow {
  readonly unit: Unit;
  readonly limit: number;
  private readonly per: number;
  private readonly taken: { amount: number; readonly atMs: number }[] = [];
  private readonly held = new Map<object, { amount: number; readonly atMs: number }>();

  constructor({ unit, limit, per }: Limit) {
    this.unit = unit;
    this.limit = limit;
    this.per = per;
  }

  used(nowMs: number): number {
    return this.taken.reduce((sum, { amount, atMs }) => sum + (atMs + this.per > nowMs ? amount : 0), 0);
  }

  get reserved(): number {
    return [...this.held.values()].reduce((sum, { amount }) => sum + amount, 0);
  }

  hold(lease: object, amount: number, nowMs: number): void {
    const entry = { amount, atMs: nowMs };
    this.taken.push(entry);
    this.held.set(lease, entry);
  }

  settle(lease: object, actual: number | undefined, nowMs: number): void {
    const entry = this.held.get(lease) as { amount: number };
    this.held.delete(lease);
    if (actual === undefined) return;
    for (let left = actual - entry.amount, atMs = nowMs; left > 0; left -= this.limit, atMs += this.per)
      this.taken.push({ amount: Math.min(left, this.limit), atMs });
    entry.amount = Math.min(actual, entry.amount);
  }
}

/** What a request of this ending counts for in the end; undefined where the estimate stands. */
function actualOf(ending: (typeof endings)[number], input: number, output: number): Partial<Amounts> {
  if (ending === 'was never sent') return { requests: 0, tokens: 0, outputTokens: 0 };
  if (ending === 'is wrong' || ending === 'is put off') return { tokens: 0, outputTokens: 0 };
  if (ending === 'says nothing' || ending === 'fails') return {};
  return { tokens: input + output, outputTokens: output };
}

/** One history; what went wrong in it. */
async function play(seed: number): Promise<string[]> {
  const random = new Random(seed);
  const clock = new ManualClock();
  const pool = new EndpointPool();
  for (const id of ['a', 'b']) pool.add(id);
  const quotas = (limits: readonly Limit[]) => limits.map((each) => ({ ...each, window: 'sliding' as const }));
  const detector = quotaDetector({
    travel: 0,
    rejectInfeasible: false,
    random: () => 0,
    groups: [
      { name: 'account', learn: false, quotas: quotas(ofAccount) },
      { by: 'endpoint', learn: false, quotas: quotas(ofEndpoint) },
    ],
  });
  const flow = new FlowController({ clock, pool, constraints: [detector], defaultRequestTtl: 0 });
  const account = ofAccount.map((limit) => new NaiveWindow(limit));
  const endpoints = new Map(pool.endpoints.map(({ id }) => [id, ofEndpoint.map((limit) => new NaiveWindow(limit))]));
  const windowsOf = (lease: Lease): NaiveWindow[] => [...account, ...(endpoints.get(lease.endpoint?.id ?? '') ?? [])];
  const problems: string[] = [];
  const waiting = new Set<AbortController>();
  const running: { readonly lease: Lease; readonly abort: AbortController }[] = [];
  let dispatched = 0;

  flow.on('dispatched', ({ lease, item }) => {
    dispatched++;
    const { inputTokens, maxOutputTokens } = item.request as unknown as {
      inputTokens: number;
      maxOutputTokens: number;
    };
    const amounts: Amounts = { requests: 1, tokens: inputTokens + maxOutputTokens, outputTokens: maxOutputTokens };
    for (const window of windowsOf(lease)) {
      const before = window.used(clock.now());
      if (before + amounts[window.unit] > window.limit)
        problems.push(`${before} + ${amounts[window.unit]} ${window.unit} of ${window.limit}`);
      window.hold(lease, amounts[window.unit], clock.now());
    }
  });
  const follow = async (outcome: ReturnType<FlowController['enqueue']>, abort: AbortController): Promise<void> => {
    waiting.add(abort);
    const ended = await outcome;
    waiting.delete(abort);
    if (ended.type === 'Dispatched') running.push({ lease: ended.lease, abort });
    else if (ended.reason !== 'cancelled') problems.push(`a request was dropped: ${ended.reason}`);
  };
  const send = (): void => {
    const abort = new AbortController();
    const request = {
      byteSize: 1,
      inputTokens: random.int(100),
      maxOutputTokens: random.int(120),
      signal: abort.signal,
    };
    void follow(flow.enqueue(request, { fairnessId: `t${random.int(3)}`, priority: random.int(3) - 1 }), abort);
  };
  const end = (ending: (typeof endings)[number]): void => {
    const [one] = running.splice(random.int(running.length), 1);
    if (one === undefined) return;
    const { lease, abort } = one;
    const isMore = ending === 'reports more';
    const [promptTokens, completionTokens] = [1 + random.int(isMore ? 300 : 20), random.int(isMore ? 300 : 20)];
    const actual = actualOf(ending, promptTokens, completionTokens);
    // The list first: what comes back may let the next one go at once.
    for (const window of windowsOf(lease)) window.settle(lease, actual[window.unit], clock.now());
    if (ending === 'was never sent') lease.unsent();
    if (ending === 'is wrong') lease.answered({ status: 400, headers: {} });
    if (ending === 'fails') lease.answered({ status: 500, headers: {} });
    if (ending === 'is put off') {
      lease.answered({ status: 429, headers: { 'retry-after-ms': String(random.int(5000)) } });
      void follow(lease.requeue(), abort);
      return;
    }
    if (ending.startsWith('reports')) lease.report({ promptTokens, completionTokens });
    lease.release();
  };
  const check = (step: string): void => {
    const nowMs = clock.now();
    for (const { group, unit, used, reserved } of detector.quotas(nowMs).quotas) {
      const naive = (group === 'account' ? account : endpoints.get(group))?.find((each) => each.unit === unit);
      if (naive === undefined) {
        problems.push(`${step}: an unknown group ${group}`);
        continue;
      }
      const expected = [naive.used(nowMs), Math.min(naive.reserved, naive.used(nowMs))];
      if (used + reserved !== expected[0] || reserved !== expected[1])
        problems.push(
          `${step}: ${group} has used and reserved ${[used + reserved, reserved]} ${unit}, and the list says ${expected}`,
        );
    }
    problems.push(...audit(flow).violations.map((violation) => `${step}: ${violation}`));
  };

  for (let step = 0; step < 150 && problems.length === 0; step++) {
    const deed = random.int(10);
    if (deed < 4) send();
    else if (deed < 7) end(endings[random.int(endings.length)] as (typeof endings)[number]);
    else if (deed < 9) clock.advance(random.int(6000));
    else [...waiting][random.int(waiting.size + 1)]?.abort();
    await turns();
    check(`step ${step}`);
  }
  // All that runs ends: everybody who waits has a turn, and everything comes back.
  for (let round = 0; round < 200 && waiting.size + running.length > 0 && problems.length === 0; round++) {
    while (running.length > 0) end('reports less');
    clock.advance(5000);
    await turns();
    check(`round ${round}`);
  }
  if (waiting.size > 0) problems.push(`${waiting.size} wait for ever`);
  clock.advance(20_000);
  check('the end');
  for (const { group, unit, used, reserved } of detector.quotas(clock.now()).quotas)
    if (used + reserved !== 0) problems.push(`${group} never gets its ${unit} back`);
  if (dispatched < 10) problems.push(`only ${dispatched} were dispatched`);
  return problems;
}

describe('quotas in random histories', () => {
  it('hold in every window, and count what a list of all takings counts after every step', async () => {
    for (let seed = 1; seed <= 60; seed++) expect(await play(seed), `seed ${seed}`).toEqual([]);
  });
});
