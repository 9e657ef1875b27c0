/** The playground without a browser: its scenes, its links, and the code and the file that it prints. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { codeOf } from '../../site/playground/code.js';
import { fromLink, toLink } from '../../site/playground/link.js';
import { Run, type Server } from '../../site/playground/run.js';
import { scenarioText } from '../../site/playground/scenario.js';
import { scenes } from '../../site/playground/scenes.js';
import type { Settings } from '../../site/playground/settings.js';
import { type FlowController, resolveOptions } from '../../src/index.js';
import { loadScenario } from '../../src/simulator/index.js';
import { variants } from './settings.js';

/** Inside the package, so that the printed code finds it by its name. */
const scratch = fileURLToPath(new URL('../../test-results/playground/', import.meta.url));
mkdirSync(scratch, { recursive: true });
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const [noisy, , dying] = scenes.map(({ settings }) => settings) as [Settings, Settings, Settings];

function at(settings: Settings, seconds: number): Run {
  const run = new Run(settings);
  while (!run.advance(seconds * 1000, 1000));
  return run;
}

const taken = ({ seats }: Server): number => seats.filter((request) => request !== undefined).length;

const ttft = (run: Run, tenant: number): number => run.firstTokens.recent(tenant, run.reachedMs)?.p99Ms ?? Number.NaN;

describe('the scenes of the playground', () => {
  it('one noisy tenant waits, and the others hardly', () => {
    const run = at(noisy, 60);
    expect(run.look().flows[0]).toBeGreaterThan(100);
    expect(ttft(run, 1)).toBeLessThan(1500);
    expect(ttft(run, 0)).toBeGreaterThan(5 * ttft(run, 1));
  });

  it('without fairness everybody waits as long as the noisy one', () => {
    const run = at({ ...noisy, fairness: 'global-strict-fairness-policy' }, 60);
    expect(ttft(run, 1)).toBeGreaterThan(5000);
  });

  it('chat beside batch finds room, unless batch may fill everything', () => {
    const [held, open] = [scenes[1]!.settings, { ...scenes[1]!.settings, ceiling: 100 }].map((settings) =>
      ttft(at(settings, 60), 0),
    );
    expect(held).toBeLessThan(500);
    expect(open).toBeGreaterThan(1.3 * (held as number));
  });

  it('a server that dies runs nothing, and is used again when it is back', () => {
    const running = (seconds: number): readonly [boolean, number] => {
      const { servers } = at(dying, seconds);
      return [servers[1]!.isDown, taken(servers[1]!)];
    };
    expect(running(19)).toEqual([false, expect.any(Number)]);
    expect(running(19)[1]).toBeGreaterThan(0);
    expect(running(25)).toEqual([true, 0]);
    expect(running(55)[1]).toBeGreaterThan(0);
  });
});

describe('the sliders of quotas and faults', () => {
  const perSecond = (settings: Settings): number => {
    const run = at(settings, 60);
    return settings.tenants.reduce(
      (sum, _, tenant) => sum + (run.firstTokens.recent(tenant, run.reachedMs)?.perSecond ?? 0),
      0,
    );
  };

  it('a quota of requests is what is served, though seats are free', () => {
    const quota: Settings = { ...noisy, requestQuota: 300 };
    expect(perSecond(quota)).toBeGreaterThan(4.5);
    expect(perSecond(quota)).toBeLessThan(5.5);
    expect(perSecond(noisy)).toBeGreaterThan(7);
    const { inFlight, waiting, quotas } = at(quota, 60).look();
    expect(inFlight).toBeLessThan(36);
    expect(waiting).toBeGreaterThan(500);
    expect(quotas.map(({ unit }) => unit)).toEqual(['requests']);
    expect(quotas[0]?.taken).toBeGreaterThan(0.9);
  });

  it('a quota of tokens lets as many go as their prompts and answers allow', () => {
    // 550 tokens each, on average; at the rim it varies with their sizes.
    const served = perSecond({ ...noisy, tokenQuota: 150_000 });
    expect(served).toBeGreaterThan(3.5);
    expect(served).toBeLessThan(5.5);
  });

  it('a server that is slow serves less, and is as before when that is over', () => {
    const slow: Settings = { ...noisy, slow: 2, slowness: 8, faultAt: 20, faultFor: 30 };
    const [during, before] = [at(slow, 45), at(slow, 19)];
    expect(during.servers.map(({ isSlow }) => isSlow)).toEqual([false, true, false]);
    expect(before.servers.some(({ isSlow }) => isSlow)).toBe(false);
    const late = (settings: Settings): number => at(settings, 49).look().waiting;
    expect(late(slow)).toBeGreaterThan(late(noisy) + 30);
    expect(at(slow, 60).servers.some(({ isSlow }) => isSlow)).toBe(false);
  });
});

describe('a run', () => {
  it.each(variants)('shows on its servers what the controller has in flight: %s', (_, settings) => {
    for (const seconds of [5, 40]) {
      const run = at(settings, seconds);
      const shown = run.servers.reduce((sum, server) => sum + taken(server), 0);
      expect(shown).toBe(run.look().inFlight);
      expect(run.look().flows.reduce((sum, waiting) => sum + waiting, 0)).toBe(run.look().waiting);
    }
  });

  it('is the same picture whether it was reached in one go or step by step', () => {
    const steps = new Run(dying);
    for (let seconds = 1; seconds <= 40; seconds++) steps.advance(seconds * 1000, 1000);
    const go = at(dying, 40);
    expect(steps.look()).toEqual(go.look());
    expect(ttft(steps, 2)).toBe(ttft(go, 2));
  });
});

describe('a link', () => {
  it.each(variants)('carries the settings: %s', (_, settings) => {
    expect(fromLink(toLink(settings))).toEqual(settings);
  });

  it('that is wrong is put right', () => {
    const { tenants, servers, seats, outage, slow, requestQuota, fairness } = fromLink(
      '#t=A%3Cb%3E 1e9 x -1 7&t=ab 1&servers=NaN&seats=-5&outage=6&slow=5&requestQuota=-7&fairness=toString',
    );
    expect(tenants).toEqual([{ name: 'ab', rate: 60, prompt: 300, answer: 10, priority: 10 }]);
    expect([servers, seats, outage, slow, requestQuota, fairness]).toEqual([
      3,
      1,
      0,
      0,
      0,
      'round-robin-fairness-policy',
    ]);
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
