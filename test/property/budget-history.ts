/**
 * A random history of budgets of the calendar against a naive model, a list of everything that was spent with its date:
 * after every step each tenant and each level of its path has spent what the list says, whatever became of requests,
 * servers and processes. It begins shortly before a leap day ends, and before clocks go forward or back.
 */
import { EndpointPool, FlowController, type Lease } from '../../src/index.js';
import { type Budgets, budgets as budgetsOf } from '../../src/spending/index.js';
import { audit, ManualClock } from '../../src/testing/index.js';
import { turns } from '../support/flow.js';
import { Random } from './random.js';

const hourMs = 3_600_000;
const begins = ['2028-02-29T12:00:00Z', '2026-03-28T12:00:00Z', '2026-10-24T12:00:00Z', '2026-12-30T12:00:00Z'];
const zones = ['UTC', 'Europe/Berlin', 'America/New_York', 'Asia/Kathmandu', 'Australia/Lord_Howe'];
const tenants = ['acme/search/1', 'acme/search/2', 'acme/sales', 'solo'];
const prices = { small: { input: 1e6, output: 2e6 }, '*': { input: 3e6, output: 3e6 } };
const endings = ['reports', 'says nothing', 'was never sent', 'is wrong', 'moves'] as const;

interface Spent {
  amount: number;
  readonly owner: string;
  readonly unit: string;
  readonly date: string;
}

/** The tenant by the day in tokens and requests, each level of its path by the month in money. */
const limits = { tokens: 300, requests: 8, cost: 4000 };

/** One history; what went wrong in it. */
export async function budgetHistory(seed: number): Promise<string[]> {
  const random = new Random(seed);
  const one = <T>(of: readonly T[]): T => of[random.int(of.length)] as T;
  const zone = one(zones);
  const beganAtMs = Date.parse(one(begins));
  const clock = new ManualClock();
  const wallClock = (): number => beganAtMs + clock.now();
  const format = new Intl.DateTimeFormat('sv-SE', { timeZone: zone, dateStyle: 'short' });
  let [dated, date] = [Number.NaN, ''];
  function dateNow(): string {
    if (dated !== wallClock()) [dated, date] = [wallClock(), format.format(wallClock())];
    return date;
  }
  const problems: string[] = [];
  let spent: Spent[] = [];
  let running: { lease: Lease; parts: Spent[]; input: number; output: number; model: string }[] = [];
  const waiting = new Set<AbortController>();
  let dispatched = 0;
  let process = 0;

  const usedBy = (owner: string, unit: string): number => {
    const date = dateNow();
    const length = unit === 'cost' ? 7 : 10;
    const isNow = (each: Spent): boolean => each.date.slice(0, length) === date.slice(0, length);
    return spent.reduce(
      (sum, each) => sum + (each.owner === owner && each.unit === unit && isNow(each) ? each.amount : 0),
      0,
    );
  };
  const costOf = (model: string, input: number, output: number): number =>
    model === 'small' ? input + 2 * output : 3 * (input + output);

  const budgets = (): Budgets =>
    budgetsOf({
      wallClock,
      prices,
      budgets: [
        {
          by: 'flow',
          limits: [
            { unit: 'tokens', limit: limits.tokens, per: 'day', zone },
            { unit: 'requests', limit: limits.requests, per: 'day', zone },
          ],
        },
        { by: 'path', limits: [{ unit: 'cost', limit: limits.cost, per: 'month', zone }] },
      ],
    });

  function start(saved: Iterable<never>): { flow: FlowController; detector: Budgets } {
    const detector = budgets();
    detector.restore(saved, clock.now());
    const pool = new EndpointPool();
    for (const id of ['a', 'b']) pool.add(id);
    const flow = new FlowController({ clock, pool, constraints: [detector], defaultRequestTtl: '6h' });
    listen(flow);
    return { flow, detector };
  }
  let world = start([]);

  function listen(flow: FlowController): void {
    const own = process;
    flow.on('dispatched', ({ lease, item }) => {
      if (own !== process) return;
      dispatched++;
      const { inputTokens, maxOutputTokens, model } = item.request as unknown as Record<string, number> & {
        model: string;
      };
      const [input, output] = [Number(inputTokens), Number(maxOutputTokens)];
      const { fairnessId } = item;
      const levels = fairnessId.split('/').map((_, i, all) => all.slice(0, i + 1).join('/'));
      const amounts = [
        [fairnessId, 'tokens', input + output, limits.tokens],
        [fairnessId, 'requests', 1, limits.requests],
        ...levels.map((owner) => [owner, 'cost', costOf(model, input, output), limits.cost] as const),
      ] as const;
      const parts = amounts.map(([owner, unit, amount, limit]) => {
        const before = usedBy(owner, unit);
        if (before + amount > limit) problems.push(`${owner}: ${before} + ${amount} ${unit} of ${limit}`);
        return { owner, unit, amount, date: dateNow() };
      });
      spent.push(...parts);
      running.push({ lease, parts, input, output, model });
    });
  }

  function send(): void {
    const abort = new AbortController();
    const request = {
      byteSize: 1,
      inputTokens: 1 + random.int(60),
      maxOutputTokens: random.int(60),
      model: one(['small', 'new']),
      signal: abort.signal,
    };
    waiting.add(abort);
    void world.flow
      .enqueue(request as never, { fairnessId: one(tenants), priority: random.int(3) - 1 })
      .then((ended) => {
        waiting.delete(abort);
        const reason = ended.type === 'Dispatched' ? undefined : ended.reason;
        if (
          ended.type !== 'Dispatched' &&
          reason !== 'cancelled' &&
          reason !== 'over-budget' &&
          reason !== 'ttl-expired'
        )
          problems.push(`a request was dropped: ${reason}`);
      });
  }

  function end(ending: (typeof endings)[number]): void {
    const [was] = running.splice(random.int(running.length), 1);
    if (was === undefined) return;
    const { lease, parts, model } = was;
    // Never more than it was taken for: what is beyond that counts in the span in which it is told.
    const [input, output] = [1 + random.int(was.input), random.int(was.output + 1)];
    const isTold = ending === 'reports' || ending === 'moves';
    if (ending === 'moves' && lease.endpoint !== undefined) lease.bind(lease.endpoint.id === 'a' ? 'b' : 'a');
    // The list first: what comes back may let the next one go at once.
    for (const part of parts) {
      const actual =
        part.unit === 'requests' ? 1 : part.unit === 'tokens' ? input + output : costOf(model, input, output);
      if (ending === 'was never sent') part.amount = 0;
      else if (ending === 'is wrong' && part.unit !== 'requests') part.amount = 0;
      else if (isTold) part.amount = actual;
    }
    if (ending === 'was never sent') lease.unsent();
    if (ending === 'is wrong') lease.answered({ status: 400, headers: {} });
    if (isTold) lease.report({ promptTokens: input, completionTokens: output });
    lease.release();
  }

  function restart(): void {
    const saved = JSON.stringify([...world.detector.saved(clock.now())]);
    process++;
    // Nobody knows what became of those that ran: they count as they were estimated.
    running = [];
    waiting.clear();
    world = start(JSON.parse(saved));
  }

  function reload(): void {
    const detector = budgets();
    detector.restore(world.detector.saved(clock.now()), clock.now());
    // Those that run are settled where they were taken from; here they count as they were estimated.
    running = [];
    world.flow.reconfigure({ constraints: [detector] });
    world.detector = detector;
  }

  function check(step: string): void {
    for (const tenant of tenants) {
      for (const { owner = '', unit, used, reserved } of world.detector.budgetsOf(tenant, clock.now())) {
        const expected = usedBy(owner, unit);
        if (Math.abs(used + reserved - expected) > 1e-6)
          problems.push(`${step}: ${owner} spent ${used} + ${reserved} ${unit}, and the list says ${expected}`);
      }
    }
    problems.push(...audit(world.flow).violations.map((violation) => `${step}: ${violation}`));
  }

  for (let step = 0; step < 120 && problems.length === 0; step++) {
    const deed = random.int(24);
    let name: string = one(endings);
    if (deed < 9) send();
    else if (deed < 16) end(name as (typeof endings)[number]);
    else if (deed < 21) clock.advance(random.int(3) === 0 ? random.int(9 * hourMs) : random.int(hourMs));
    else if (deed === 21) [...waiting][random.int(waiting.size + 1)]?.abort();
    else if (deed === 22) restart();
    else reload();
    if (deed < 9 || deed >= 16) name = String(deed);
    spent = spent.filter(({ date }) => date.slice(0, 7) >= dateNow().slice(0, 7) || running.length > 0);
    await turns();
    check(`step ${step} (${name})`);
  }
  if (dispatched < 10) problems.push(`only ${dispatched} were dispatched`);
  return problems;
}
