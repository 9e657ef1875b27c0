/** The playground without a browser: its scenes, its links, and the code and the file that it prints. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { codeOf } from '../../site/playground/code.js';
import { toggled } from '../../site/playground/faults.js';
import { type Counts, Invariants } from '../../site/playground/invariants.js';
import { fromLink, toLink } from '../../site/playground/link.js';
import { Replica } from '../../site/playground/replica.js';
import { Run, type Server } from '../../site/playground/run.js';
import { scenarioText } from '../../site/playground/scenario.js';
import { scenes } from '../../site/playground/scenes.js';
import { type FaultKind, faultKinds, type Settings } from '../../site/playground/settings.js';
import { sharedStore } from '../../site/playground/shared-state.js';
import { type FlowController, resolveOptions } from '../../src/index.js';
import { loadScenario } from '../../src/simulator/index.js';
import { variants } from './settings.js';

/** Inside the package, so that the printed code finds it by its name. */
const scratch = fileURLToPath(new URL('../../test-results/playground/', import.meta.url));
mkdirSync(scratch, { recursive: true });
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const [noisy, , dying, cut] = scenes.map(({ settings }) => settings) as [Settings, Settings, Settings, Settings];

async function at(settings: Settings, seconds: number): Promise<Run> {
  const run = new Run(settings);
  while (!(await run.advance(seconds * 1000, 1000)));
  return run;
}

const taken = ({ seats }: Server): number => seats.filter((request) => request !== undefined).length;

const ttft = (run: Run, tenant: number): number => run.firstTokens.recent(tenant, run.reachedMs)?.p99Ms ?? Number.NaN;

describe('the scenes of the playground', () => {
  it('one noisy tenant waits, and the others hardly', async () => {
    const run = await at(noisy, 60);
    expect(run.look().flows[0]).toBeGreaterThan(100);
    expect(ttft(run, 1)).toBeLessThan(1500);
    expect(ttft(run, 0)).toBeGreaterThan(5 * ttft(run, 1));
  });

  it('without fairness everybody waits as long as the noisy one', async () => {
    const run = await at({ ...noisy, fairness: 'global-strict-fairness-policy' }, 60);
    expect(ttft(run, 1)).toBeGreaterThan(5000);
  });

  it('chat beside batch finds room, unless batch may fill everything', async () => {
    const [held, open] = await Promise.all(
      [scenes[1]!.settings, { ...scenes[1]!.settings, ceiling: 100 }].map(async (settings) =>
        ttft(await at(settings, 60), 0),
      ),
    );
    expect(held).toBeLessThan(500);
    expect(open).toBeGreaterThan(1.3 * (held as number));
  });

  it('a server that dies runs nothing, and is used again when it is back', async () => {
    const running = async (seconds: number): Promise<readonly [boolean, number]> => {
      const { servers } = await at(dying, seconds);
      return [servers[1]!.isDown, taken(servers[1]!)];
    };
    expect(await running(19)).toEqual([false, expect.any(Number)]);
    expect((await running(19))[1]).toBeGreaterThan(0);
    expect(await running(25)).toEqual([true, 0]);
    expect((await running(55))[1]).toBeGreaterThan(0);
  });
});

describe('the sliders of quotas and faults', () => {
  const perSecond = async (settings: Settings): Promise<number> => {
    const run = await at(settings, 60);
    return settings.tenants.reduce(
      (sum, _, tenant) => sum + (run.firstTokens.recent(tenant, run.reachedMs)?.perSecond ?? 0),
      0,
    );
  };

  it('a quota of requests is what is served, though seats are free', async () => {
    const quota: Settings = { ...noisy, requestQuota: 300 };
    expect(await perSecond(quota)).toBeGreaterThan(4.5);
    expect(await perSecond(quota)).toBeLessThan(5.5);
    expect(await perSecond(noisy)).toBeGreaterThan(7);
    const { inFlight, waiting, quotas } = (await at(quota, 60)).look();
    expect(inFlight).toBeLessThan(36);
    expect(waiting).toBeGreaterThan(500);
    expect(quotas.map(({ unit }) => unit)).toEqual(['requests']);
    expect(quotas[0]?.taken).toBeGreaterThan(0.9);
  });

  it('a quota of tokens lets as many go as their prompts and answers allow', async () => {
    // 550 tokens each, on average; at the rim it varies with their sizes.
    const served = await perSecond({ ...noisy, tokenQuota: 150_000 });
    expect(served).toBeGreaterThan(3.5);
    expect(served).toBeLessThan(5.5);
  });

  it('a server that is slow serves less, and is as before when that is over', async () => {
    const slow: Settings = { ...noisy, slowness: 8, faults: [{ kind: 'slow', of: 2, at: 20, for: 30 }] };
    const [during, before] = [await at(slow, 45), await at(slow, 19)];
    expect(during.servers.map(({ isSlow }) => isSlow)).toEqual([false, true, false]);
    expect(before.servers.some(({ isSlow }) => isSlow)).toBe(false);
    const late = async (settings: Settings): Promise<number> => (await at(settings, 49)).look().waiting;
    expect(await late(slow)).toBeGreaterThan((await late(noisy)) + 30);
    expect((await at(slow, 60)).servers.some(({ isSlow }) => isSlow)).toBe(false);
  });
});

describe('budgets and the ledger', () => {
  it('a budget holds its tenant back, and no other', async () => {
    const run = await at({ ...noisy, budget: 60_000 }, 60);
    const { budgets, waiting, flows, inFlight } = run.look();
    expect(budgets).toHaveLength(3);
    expect(budgets[0]).toBeLessThan(0.1);
    expect(flows[0]).toBe(waiting);
    expect(inFlight).toBeLessThan(36);
    expect((await at(noisy, 60)).look().budgets).toEqual([]);
  });

  it('the ledger holds back what a server has no room for', async () => {
    const run = await at({ ...noisy, kvCache: 6000 }, 60);
    const { inFlight, waiting, ledger } = run.look();
    expect(ledger).toBeGreaterThan(0.5);
    expect(ledger).toBeLessThanOrEqual(1);
    expect(inFlight).toBeLessThan(36);
    expect(waiting).toBeGreaterThan(100);
    expect((await at(noisy, 60)).look().ledger).toBeUndefined();
  });
});

describe('a click that breaks something', () => {
  it.each(Object.keys(faultKinds) as FaultKind[])('changes nothing of what was before: %s', async (kind) => {
    const broken = toggled(cut, kind, 30);
    expect(broken).not.toEqual(cut);
    expect((await at(broken, 29)).look()).toEqual((await at(cut, 29)).look());
  });

  it('mends it when it is clicked again, and leaves no fault that never held', () => {
    const broken = toggled(noisy, 'outage', 30);
    expect(broken.faults).toEqual([{ kind: 'outage', of: 2, at: 30, for: 20 }]);
    expect(toggled(broken, 'outage', 37).faults).toEqual([{ kind: 'outage', of: 2, at: 30, for: 7 }]);
    expect(toggled(broken, 'outage', 30)).toEqual(noisy);
  });

  it('a tenant that floods waits, and the others hardly', async () => {
    const calm: Settings = { ...noisy, tenants: noisy.tenants.map((tenant) => ({ ...tenant, rate: 4 })) };
    const flood = { ...calm, flood: 10, faults: [{ kind: 'flood', of: 2, at: 20, for: 20 }] as const };
    const [before, during] = [(await at(flood, 19)).look(), (await at(flood, 39)).look()];
    expect(before.flows[1]).toBeLessThan(20);
    expect(during.flows[1]).toBeGreaterThan(100);
    expect(during.flows[0]).toBeLessThan(20);
  });

  it('a reload changes the seats of live queues, and a second one changes them back', async () => {
    const reload = { ...noisy, faults: [{ kind: 'reload', of: 1, at: 20, for: 20 }] as const };
    const inFlight = async (seconds: number): Promise<number> => (await at(reload, seconds)).look().inFlight;
    expect([await inFlight(19), await inFlight(39), await inFlight(45)]).toEqual([36, 18, 36]);
    const { sent, ended, dropped, waiting, running } = (await at(reload, 45)).invariants.books;
    expect(sent).toBe(ended + dropped + waiting + running);
    expect(waiting).toBeGreaterThan(100);
  });

  it('replicas that are cut from Redis keep to parts that fit, and share again when it is back', async () => {
    const [before, during, after] = [await at(cut, 19), await at(cut, 45), await at(cut, 70)];
    expect([before.isCut, during.isCut, after.isCut]).toEqual([false, true, false]);
    const parts = during.look().shares;
    expect(before.look().shares[0]).toBeGreaterThan(12);
    expect(parts[0]).toBeLessThanOrEqual(12);
    expect(parts.reduce((sum, part) => sum + part, 0)).toBeLessThanOrEqual(36);
    expect(during.look().waiting).toBeGreaterThan(before.look().waiting + 20);
    expect(after.look().waiting).toBeLessThan(during.look().waiting);
  });
});

describe('the invariants of a run', () => {
  it('are violated by a count that is wrong, which stays said when it is right again', async () => {
    const wrong: Settings = { ...noisy, faults: [{ kind: 'miscount', of: 1, at: 10, for: 5 }] };
    const { violations } = (await at(wrong, 20)).invariants;
    expect(violations).toEqual([expect.stringMatching(/^11 s: the endpoints have \d+ seats taken, the pool \d+$/)]);
  });

  it.each([
    ['a seat', { seats: 1 }, /^0 s: 1 seats are taken, and 0 requests run$/],
    ['a request that was let go', { dispatched: 1 }, /^0 s: 1 requests were let go, and 0 ended or run$/],
    ['an end', { dispatched: 1, released: 1 }, /^0 s: 0 requests were sent, and 1 are known$/],
    ['a drop', { dropped: 1 }, /^0 s: 0 requests were sent, and 1 are known$/],
  ])('are violated by %s that nobody else knows of', (_, more: Partial<Counts> & { seats?: number }, violation) => {
    const { seats = 0, ...counts } = more;
    const replica = new Replica(
      0,
      noisy,
      sharedStore(() => 0),
    );
    const invariants = new Invariants([replica]);
    const none = { dispatched: 0, released: 0, dropped: 0 };
    invariants.look(0, none, [0, 0, 0]);
    expect(invariants.violations).toEqual([]);
    invariants.look(0, { ...none, ...counts }, [seats, 0, 0]);
    expect(invariants.violations).toEqual([expect.stringMatching(violation)]);
  });

  it('are violated by a request that was sent and is nowhere, and by a seat too many', () => {
    const replica = new Replica(
      0,
      noisy,
      sharedStore(() => 0),
    );
    const invariants = new Invariants([replica]);
    replica.sent++;
    invariants.look(1000, { dispatched: 0, released: 0, dropped: 0 }, [0]);
    invariants.over(2000, 'gpu-1', 13, 12);
    expect(invariants.violations).toEqual([
      '1 s: 1 requests were sent, and 0 are known',
      '2 s: gpu-1 has 13 of 12 seats taken',
    ]);
  });
});

describe('a run', () => {
  it.each(variants)(
    'shows on its servers what the controllers have in flight, and its invariants hold: %s',
    async (_, settings) => {
      for (const seconds of [5, 40]) {
        const run = await at(settings, seconds);
        const shown = run.servers.reduce((sum, server) => sum + taken(server), 0);
        expect(shown).toBe(run.look().inFlight);
        expect(run.look().flows.reduce((sum, waiting) => sum + waiting, 0)).toBe(run.look().waiting);
        const { violations, looks, books } = run.invariants;
        expect(violations).toEqual([]);
        expect(looks).toBe(seconds);
        expect(books.sent).toBeGreaterThan(seconds);
      }
    },
  );

  it.each([
    ['one replica', dying],
    ['replicas that share', cut],
  ])('is the same picture whether it was reached in one go or step by step: %s', async (_, settings) => {
    const steps = new Run(settings);
    // Frames are of any length.
    for (let ms = 0; ms < 40_000; ms += 333) await steps.advance(ms, 1000);
    await steps.advance(40_000, 1000);
    const go = await at(settings, 40);
    expect(steps.look()).toEqual(go.look());
    expect(ttft(steps, 1)).toBe(ttft(go, 1));
  });
});

describe('a link', () => {
  it.each(variants)('carries the settings: %s', (_, settings) => {
    expect(fromLink(toLink(settings))).toEqual(settings);
  });

  it('that is wrong is put right', () => {
    const { tenants, servers, seats, faults, requestQuota, fairness } = fromLink(
      '#t=A%3Cb%3E 1e9 x -1 7&t=ab 1&servers=NaN&seats=-5&f=outage 6 -1 x&f=flood&f=toString 1 2 3&requestQuota=-7&fairness=toString',
    );
    expect(tenants).toEqual([{ name: 'ab', rate: 60, prompt: 300, answer: 10, priority: 10 }]);
    expect(faults).toEqual([
      { kind: 'outage', of: 3, at: 0, for: 20 },
      { kind: 'flood', of: 1, at: 20, for: 20 },
    ]);
    expect([servers, seats, requestQuota, fairness]).toEqual([3, 1, 0, 'round-robin-fairness-policy']);
    expect(fromLink('#')).toEqual(noisy);
  });
});

/** What both ways of writing a configuration come to. */
function gist(options: object): object {
  const { limits, bands, overflow, usageLimitPolicy, eviction } = resolveOptions(options as never, 'options');
  return {
    limits,
    overflow,
    ceiling: usageLimitPolicy.type,
    evicts: eviction !== undefined,
    bands: bands.map(({ priority, fairness, ordering, requestTtlMs, limits: own, flowLimits }) => [
      priority,
      fairness.type,
      ordering.type,
      requestTtlMs,
      own,
      flowLimits,
    ]),
  };
}

describe('the printed code and the printed file', () => {
  it.each(variants)('make the same controller: %s', async (name, settings) => {
    const file = `${scratch}${name.replaceAll(/\W/g, '-')}.mjs`;
    writeFileSync(
      file,
      codeOf(settings).replace('new FlowController(', '(await import("headgate"), (options) => options)('),
    );
    const { flow } = (await import(/* @vite-ignore */ pathToFileURL(file).href)) as { flow: object };
    const { options, warnings } = loadScenario(scenarioText(settings));
    expect(warnings).toEqual([]);
    const { flow: fromFile } = options;
    const read = typeof fromFile === 'function' ? fromFile() : fromFile;
    expect(gist(flow)).toEqual(gist({ ...read, pool: (flow as { pool: unknown }).pool }));
  });

  it.each(variants)('start: %s', async (name, settings) => {
    const file = `${scratch}${name.replaceAll(/\W/g, '-')}-as-printed.mjs`;
    writeFileSync(file, codeOf(settings));
    const { flow } = (await import(/* @vite-ignore */ pathToFileURL(file).href)) as { flow: FlowController };
    expect(flow.stats().waiting).toBe(0);
    await flow.close();
  });
});
