/**
 * Fifty clients of three priorities before a provider that is a process of its own and answers over HTTP, at three
 * times its quota. Its time and that of flow control stand still but for what the test lets pass, and no time passes
 * while anything is on its way: what is asserted does not depend on the machine.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { seededRandom } from '../../src/base/seeded-random.js';
import { type FetchRequest, flowFetch } from '../../src/fetch/index.js';
import { type Drop, FlowController, quotaDetector } from '../../src/index.js';
import { audit, ManualClock } from '../../src/testing/index.js';
import type { QuotaDetectorOptions } from '../../src/types/index.js';
import { type Dropped, dispatchesLate, expectNobodyDroppedInVain, type Sent } from '../support/overload.js';

const script = fileURLToPath(new URL('../../examples/hosted/provider.mjs', import.meta.url));
const minuteMs = 60_000;
const minutes = 4;
const stepMs = 100;
const clients = 50;
/** What the provider allows for a minute; each time one of them is short. */
const roomy = { requests: 100_000, input: 10_000_000, output: 10_000_000 };
const perMinute = 60;
const outputTokens = 10;
const priorities = [100, 0, -10] as const;

interface Stats {
  readonly received: number;
  readonly answered: number;
  readonly accepted: number;
  readonly violations: number;
  readonly violationsByWindow: Record<string, number>;
  readonly output: number;
}

async function startProvider(options: Record<string, string | number>) {
  const args = Object.entries({ time: 'held', 'latency-ms': 300, ...options }).flatMap(([name, value]) => [
    `--${name}`,
    String(value),
  ]);
  const child: ChildProcess = spawn(process.execPath, [script, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill());
  const [line] = (await once(child.stdout as NodeJS.ReadableStream, 'data')) as [Buffer];
  const url = line.toString().trim();
  return {
    url,
    stats: async () => (await fetch(`${url}/stats`)).json() as Promise<Stats>,
    advance: async (ms: number) =>
      void (await (await fetch(`${url}/advance?ms=${ms}`, { method: 'POST' })).arrayBuffer()),
  };
}

interface Overload {
  readonly provider: Record<string, string | number>;
  readonly quotas: QuotaDetectorOptions;
  readonly ttlMs?: number;
}

async function overload({ provider: options, quotas, ttlMs = 10 * minuteMs }: Overload) {
  const provider = await startProvider(options);
  const clock = new ManualClock();
  const random = seededRandom(11);
  const flow = new FlowController<FetchRequest>({
    constraints: [quotaDetector({ random: () => 0, ...quotas })],
    defaultRequestTtl: ttlMs,
    clock,
  });
  const sent: Sent[] = [];
  const dropped: Dropped[] = [];
  const premiumCameAtMs: number[] = [];
  let underway = 0; // sent, and not yet at the provider
  let arrived = 0;
  let answered = 0;
  flow.on('dispatched', ({ lease }) => sent.push({ atMs: clock.now(), priority: lease.priority }));
  flow.on('dropped', ({ outcome, item }) =>
    dropped.push({ drop: outcome as Drop, cameAtMs: item.enqueuedAtMs, atMs: clock.now() }),
  );

  /** Up to 200 ms of travel. */
  async function travelling(input: string | URL | Request, init?: RequestInit): Promise<Response> {
    underway++;
    await new Promise<void>((resolve) => void clock.setTimeout(resolve, random() * 200));
    underway--;
    arrived++;
    const response = await fetch(input, init);
    const text = await response.text();
    answered++;
    return new Response(text, response);
  }

  const fetchInTurn = flowFetch(flow, {
    fetch: travelling,
    clock,
    retry: { max: 10 },
    random: () => 0,
    classify: ({ headers }) => ({
      fairnessId: `client-${headers.get('x-client')}`,
      priority: Number(headers.get('x-priority')),
    }),
  });
  const statuses: number[] = [];
  let asked = 0;

  function ask(client: number): void {
    const priority = priorities[client % 3] as number;
    if (priority === 100) premiumCameAtMs.push(clock.now());
    asked++;
    const body = JSON.stringify({
      model: 'm',
      max_tokens: outputTokens,
      messages: [{ role: 'user', content: 'hello' }],
    });
    const headers = { 'x-client': String(client), 'x-priority': String(priority) };
    void fetchInTurn(provider.url, { method: 'POST', body, headers }).then(async (response) => {
      await response.text();
      statuses.push(response.status);
    });
  }

  /** All that is sent is at the provider, all that it has answered is here, and flow control has heard of it. */
  async function settle(): Promise<void> {
    for (;;) {
      await new Promise((resolve) => setImmediate(resolve));
      if (arrived === answered && flow.stats().inFlight === underway) return;
      const there = await provider.stats();
      const isHere = there.received === arrived && there.answered === answered;
      if (isHere && flow.stats().inFlight === underway + arrived - answered) return;
    }
  }

  // Three requests a second where one goes, and as many clients at once in the beginning.
  for (let client = 0; client < clients; client++) ask(client);
  for (let nowMs = 0; nowMs < minutes * minuteMs; nowMs += stepMs) {
    await settle();
    await provider.advance(stepMs);
    clock.advance(stepMs);
    if (nowMs % 1000 < 3 * stepMs) ask(Math.floor(random() * clients));
  }
  await settle();
  expect(audit(flow).violations).toEqual([]);
  return { stats: await provider.stats(), sent, dropped, premiumCameAtMs, statuses, asked };
}

describe('quotas that are configured', () => {
  it.each([
    ['openai', 'fixed', 'requests', { requests: perMinute }],
    ['openai', 'sliding', 'output tokens', { output: perMinute * outputTokens }],
    ['anthropic', 'sliding', 'requests', { requests: perMinute }],
  ])(
    'cause no 429, are used to 97 percent, and keep premium within one dispatch of ideal: %s, %s windows, %s',
    async (style, window, _unit, short) => {
      const limits = { ...roomy, ...short };
      const units = [
        ['requests', limits.requests],
        ['inputTokens', limits.input],
        ['outputTokens', limits.output],
      ] as const;
      const { stats, sent, dropped, premiumCameAtMs, statuses, asked } = await overload({
        provider: { style, window, ...limits },
        quotas: {
          groups: [
            { learn: false, quotas: units.map(([unit, limit]) => ({ unit, limit, window: window as 'fixed' })) },
          ],
        },
      });
      expect(asked).toBeGreaterThanOrEqual(3 * perMinute * minutes);
      expect(stats.violations).toBe(0);
      expect(stats.accepted).toBeGreaterThanOrEqual(0.97 * perMinute * minutes);
      expect(stats.output).toBe(stats.accepted * outputTokens);
      expect([new Set(statuses), dropped]).toEqual([new Set([200]), []]);
      const late = dispatchesLate(sent, premiumCameAtMs);
      expect(late.length).toBeGreaterThan(perMinute);
      expect(Math.max(...late)).toBeLessThanOrEqual(1);
    },
  );

  it('drop nobody whose turn comes within its time to live, and tell at once who cannot be served', async () => {
    const ttlMs = 20_000;
    const { stats, sent, dropped, statuses } = await overload({
      provider: { style: 'openai', window: 'fixed', ...roomy, requests: perMinute },
      quotas: { groups: [{ learn: false, quotas: [{ unit: 'requests', limit: perMinute, window: 'fixed' }] }] },
      ttlMs,
    });
    expect(stats.violations).toBe(0);
    expect(stats.accepted).toBeGreaterThanOrEqual(0.97 * perMinute * minutes);
    expectNobodyDroppedInVain({ sent, dropped }, ttlMs);
    const told = dropped.filter(({ drop }) => drop.reason === 'over-quota');
    expect(told.length).toBeGreaterThan(perMinute);
    for (const { cameAtMs, atMs } of told) expect(atMs).toBe(cameAtMs);
    expect(statuses.filter((status) => status === 429).length).toBe(told.length);
  });
});

describe('quotas that only answers tell', () => {
  it.each(['openai', 'anthropic'])(
    'cause one 429 a window at most, which no client sees, and are used to 97 percent: %s',
    async (style) => {
      const { stats, statuses } = await overload({
        provider: { style, window: 'fixed', ...roomy, requests: perMinute },
        quotas: {},
      });
      expect(Math.max(0, ...Object.values(stats.violationsByWindow))).toBeLessThanOrEqual(1);
      expect(new Set(statuses)).toEqual(new Set([200]));
      expect(stats.accepted).toBeGreaterThanOrEqual(0.97 * perMinute * minutes);
    },
  );
});
