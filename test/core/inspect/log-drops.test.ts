import { describe, expect, it } from 'vitest';
import type { LogDropsOptions } from '../../../src/core/inspect/log-drops.js';
import { FlowConfigError, logDrops, shadow } from '../../../src/index.js';
import { key, makeFlow, request } from '../../support/flow.js';

function setUp(options: Partial<LogDropsOptions> = {}) {
  const { flow, clock } = makeFlow({ saturationDetector: () => 2, limits: { maxRequests: 1 } });
  const lines: string[] = [];
  const log = logDrops(flow, { onLine: (line) => lines.push(line), everyMs: 1000, clock, ...options });
  const drop = (count: number, ...flowKey: Parameters<typeof key>) => {
    for (let i = 0; i < count; i++) flow.tryEnqueue({ ...request, byteSize: 2 ** 40 }, key(...flowKey));
  };
  return { flow, clock, lines, log, drop };
}

describe('logDrops', () => {
  it('writes one line for all drops of a period, which begins with the first', () => {
    const { clock, lines, drop } = setUp();
    clock.advance(700);
    drop(3, 'a');
    clock.advance(600);
    drop(2, 'b', -10);
    clock.advance(399);
    expect(lines).toEqual([]);
    clock.advance(1);
    expect(lines).toEqual(['drops=5 periodMs=1000 reasons=global-max-bytes:5 priorities=0:3,-10:2']);
    drop(1, 'a');
    clock.advance(1000);
    expect(lines[1]).toBe('drops=1 periodMs=1000 reasons=global-max-bytes:1 priorities=0:1');
  });

  it('says in shadow mode that nothing was dropped', () => {
    const summaries: unknown[] = [];
    const lines: string[] = [];
    const { flow, clock, drop } = setUp({
      onLine: (line, { isShadow }) => {
        lines.push(line);
        summaries.push(isShadow);
      },
    });
    flow.reconfigure({ mode: shadow() });
    drop(2, 'a');
    clock.advance(1000);
    flow.reconfigure({ mode: 'queue' });
    drop(1, 'a');
    clock.advance(1000);
    expect(lines).toEqual([
      'would-be-drops=2 periodMs=1000 reasons=global-max-bytes:2 priorities=0:2',
      'drops=1 periodMs=1000 reasons=global-max-bytes:1 priorities=0:1',
    ]);
    expect(summaries).toEqual([true, undefined]);
  });

  it('sets no timer while nothing is dropped', () => {
    const { clock, lines, drop } = setUp();
    expect(clock.pendingTimers).toBe(0);
    drop(1);
    expect(clock.pendingTimers).toBe(1);
    clock.advance(100_000);
    expect(clock.pendingTimers).toBe(0);
    expect(lines).toHaveLength(1);
  });

  it('names the worst fairness IDs when asked to, quoted where they need it', () => {
    const { clock, lines, drop } = setUp({ fairnessIds: true });
    for (const [name, count] of [
      ['one', 1],
      ['four', 4],
      ['two\n"', 2],
      ['three', 3],
    ] as const)
      drop(count, name);
    clock.advance(1000);
    expect(lines[0]).toContain(' fairnessIds=four:4,three:3,"two\\n\\"":2');
    expect(lines[0]).not.toContain('one');
  });

  it('gives the figures as an object too', () => {
    const summaries: unknown[] = [];
    const { clock, drop } = setUp({ onLine: (_, summary) => summaries.push(summary) });
    drop(2, 'a', 7);
    clock.advance(1000);
    expect(summaries).toEqual([{ drops: 2, periodMs: 1000, reasons: { 'global-max-bytes': 2 }, priorities: { 7: 2 } }]);
  });

  it('keeps a line short, whatever clients send', () => {
    const { clock, lines, drop } = setUp({ fairnessIds: true });
    for (let i = 0; i < 5000; i++) drop(1, `tenant-${i}`, i);
    clock.advance(1000);
    expect(lines[0]?.length).toBeLessThan(1500);
    expect(lines[0]).toContain('drops=5000');
    expect(lines[0]).toContain('other:4900');
  });

  it('tells the rest when it is stopped, and nothing afterwards', () => {
    const { clock, lines, log, drop } = setUp();
    drop(1);
    log.stop();
    log.stop();
    expect(lines).toHaveLength(1);
    drop(1);
    expect(clock.pendingTimers).toBe(0);
    expect(lines).toHaveLength(1);
  });

  it('lists everything that is wrong with its options', () => {
    expect(() => logDrops(makeFlow().flow, { onLine: 1, everyMs: 0, clock: {}, names: true } as never)).toThrow(
      FlowConfigError,
    );
    expect(() => logDrops(makeFlow().flow, { onLine: 1, everyMs: 0, clock: {}, names: true } as never)).toThrow(
      /onLine: .*\n.*everyMs: .*\n.*clock: .*\n.*names: /,
    );
  });
});
