import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import {
  type EventLoopLagDetector,
  type EventLoopLagOptions,
  eventLoopLag,
  eventLoopLagPlugin,
} from '../../../src/adapters/node/index.js';
import { defaultRegistry, FlowConfigError } from '../../../src/index.js';
import { saturationDetectorContract } from '../../../src/testing/index.js';
import { until } from '../../integration/support/until.js';
import { fakePool } from '../../support/fake-pool.js';
import { key, makeFlow, request } from '../../support/flow.js';

const made: EventLoopLagDetector[] = [];
function make(options: EventLoopLagOptions = {}): EventLoopLagDetector {
  const detector = eventLoopLag(options);
  made.push(detector);
  return detector;
}
afterEach(() => {
  for (const detector of made.splice(0)) detector.close();
});

const pool = fakePool([[0, 0]]);

function block(ms: number): void {
  const untilMs = performance.now() + ms;
  while (performance.now() < untilMs);
}

/** Keeps the loop busy in slices of `sliceMs`, until the returned function is called or the test ends. */
function keepBusy(sliceMs: number): () => void {
  let isBusy = true;
  const slice = (): void => {
    block(sliceMs);
    if (isBusy) setImmediate(slice);
  };
  const stop = (): void => {
    isBusy = false;
  };
  onTestFinished(stop);
  slice();
  return stop;
}

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** The next interval's sample. */
async function nextSample(detector: EventLoopLagDetector): Promise<NonNullable<EventLoopLagDetector['lastSample']>> {
  const before = detector.lastSample;
  await until('another sample was taken', () => detector.lastSample !== before);
  return detector.lastSample as NonNullable<EventLoopLagDetector['lastSample']>;
}

describe('saturationDetector event-loop-lag-detector', () => {
  for (const { name, run } of saturationDetectorContract(() => make())) it(name, run);
});

describe('eventLoopLag', () => {
  it('sees one long block as lag, without the resolution of the histogram', async () => {
    const detector = make({ intervalMs: 100 });
    await nextSample(detector);
    await sleep(25); // the histogram measures from its second tick on
    block(150);
    const { maxLagMs, p99LagMs } = await nextSample(detector);
    expect(maxLagMs).toBeGreaterThan(100);
    expect(maxLagMs).toBeLessThan(10_000); // ms, not ns
    expect(p99LagMs).toBeGreaterThan(100);
    expect(detector.saturation(pool, 0)).toBeGreaterThan(0.3); // 0.3 of at least 1
  });

  it('sees a loop that is busy in small slices as utilization', async () => {
    const detector = make({ intervalMs: 100, riseSmoothing: 1, utilizationTarget: 0.5, lagTargetMs: 10_000 });
    keepBusy(5);
    await nextSample(detector);
    const { utilization } = await nextSample(detector);
    expect(utilization).toBeGreaterThan(0.5);
    expect(detector.saturation(pool, 0)).toBeCloseTo(utilization / 0.5, 6);
  });

  it('rises faster than it falls', async () => {
    const detector = make({ intervalMs: 200 });
    await sleep(25);
    block(300);
    await nextSample(detector);
    const { p99LagMs, utilization } = detector.lastSample as NonNullable<EventLoopLagDetector['lastSample']>;
    const high = detector.saturation(pool, 0);
    expect(high).toBeCloseTo(0.3 * Math.max(p99LagMs / 100, utilization / 0.95), 6);
    const after = await nextSample(detector);
    const reading = Math.max(after.p99LagMs / 100, after.utilization / 0.95);
    expect(detector.saturation(pool, 0)).toBeCloseTo(high + (reading - high) * (reading > high ? 0.3 : 0.1), 6);
  });

  it('lets waiting requests go when the loop is free again', async () => {
    // A machine that others load makes the loop late and takes its time away: only what it does itself shall count.
    const detector = make({
      intervalMs: 100,
      riseSmoothing: 1,
      fallSmoothing: 1,
      utilizationTarget: 0.5,
      lagTargetMs: 10_000,
    });
    const { flow } = makeFlow({ saturationDetector: detector });
    const stop = keepBusy(50);
    await nextSample(detector);
    expect(detector.saturation(pool, 0)).toBeGreaterThan(1);
    void flow.enqueue(request, key());
    expect(flow.stats().waiting).toBe(1);
    stop();
    await until('the request went', () => flow.stats().inFlight === 1);
    expect(detector.saturation(pool, 0)).toBeLessThan(1);
  });

  it('stops measuring with the last controller that listens, and begins again with another', async () => {
    const detector = make({ intervalMs: 20 });
    const { flow } = makeFlow({ saturationDetector: detector });
    await nextSample(detector);
    await flow.close();
    const last = detector.lastSample;
    const other = make({ intervalMs: 20 });
    makeFlow({ saturationDetector: other });
    for (let i = 0; i < 3; i++) await nextSample(other);
    expect(detector.lastSample).toBe(last);
    makeFlow({ saturationDetector: detector });
    await nextSample(detector);
  });

  it('does not keep a process alive', async () => {
    const folder = mkdtempSync(fileURLToPath(new URL('../../../test-results/lag-', import.meta.url)));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const script = join(folder, 'idle.mjs');
    const { outputFiles } = await build({
      stdin: {
        contents: `import { eventLoopLag } from './src/adapters/node/index.ts'; import { FlowController } from './src/index.ts';
          new FlowController({ saturationDetector: eventLoopLag({ intervalMs: 10 }) }); console.log('idle');`,
        resolveDir: fileURLToPath(new URL('../../../', import.meta.url)),
      },
      bundle: true,
      platform: 'node',
      format: 'esm',
      write: false,
    });
    writeFileSync(script, outputFiles[0]?.text ?? '');
    const { status, stdout, signal } = spawnSync(process.execPath, [script], { timeout: 120_000, encoding: 'utf8' });
    expect({ status, stdout, signal }).toEqual({ status: 0, stdout: 'idle\n', signal: null });
  });

  it('gets its name from a registry that was given the plugin', () => {
    const registry = defaultRegistry().add(eventLoopLagPlugin);
    const detector = registry.create('event-loop-lag-detector', { lagTargetMs: 50 }) as EventLoopLagDetector;
    made.push(detector);
    expect(detector.type).toBe('event-loop-lag-detector');
    expect(() => registry.create('event-loop-lag-detector', { lagTarget: 50 })).toThrow('did you mean "lagTargetMs"?');
  });

  it.each([
    { intervalMs: 0 },
    { resolutionMs: 0.5 },
    { lagTargetMs: -1 },
    { utilizationTarget: 1.1 },
    { riseSmoothing: 0 },
    { lag: 1 },
  ])('refuses %o', (options) => {
    expect(() => eventLoopLag(options)).toThrow(FlowConfigError);
  });
});
