import { beforeEach, describe, expect, it } from 'vitest';
import { concurrencyDetector, FlowController, type FlowRequest, type Lease, programAware } from '../../../src/index.js';
import { ManualClock } from '../../../src/testing/index.js';
import type { ProgramAwareOptions } from '../../../src/tiers/2-fairness/program-aware.js';
import type { ProgramAwarePolicy } from '../../../src/types/index.js';
import { dial, leaseOf } from '../../support/flow.js';

/** A controller whose gate is closed unless a test opens it, and one policy object for all its bands. */
function makeWorld(options: ProgramAwareOptions = {}) {
  const policy = programAware(options);
  const clock = new ManualClock();
  const detector = dial(1, true);
  const flow = new FlowController({
    clock,
    saturationDetector: detector,
    flowIdleTimeout: '1s',
    defaultRequestTtl: Number.POSITIVE_INFINITY,
    bands: [
      { priority: 0, fairness: policy },
      { priority: 1, fairness: policy },
    ],
  });
  /** Dispatched at once, as if the pool were idle. */
  function run(
    fairnessId: string,
    { tokens, priority = 0 }: Pick<FlowRequest, 'tokens'> & { priority?: number } = {},
  ): Lease {
    detector.turnTo(0);
    const lease = leaseOf(flow.tryEnqueue({ byteSize: 1, tokens }, { fairnessId, priority }));
    detector.turnTo(1);
    return lease;
  }
  function use(fairnessId: string, promptTokens: number, completionTokens = 0, priority = 0): void {
    const lease = run(fairnessId, { priority });
    lease.report({ promptTokens, completionTokens });
    lease.release();
  }
  function wait(...fairnessIds: string[]): void {
    for (const fairnessId of fairnessIds) void flow.enqueue({ byteSize: 1 }, { fairnessId, priority: 0 });
  }
  /** The fairness IDs of all that waits, in the order in which it goes. */
  function drain(): string {
    const order: string[] = [];
    const stop = flow.on('dispatched', ({ item, lease }) => {
      order.push(item.fairnessId);
      lease.release();
    });
    detector.turnTo(0);
    detector.turnTo(1);
    stop();
    return order.join(' ');
  }
  return { policy, clock, detector, flow, run, use, wait, drain };
}

describe('programAware, las', () => {
  let world: ReturnType<typeof makeWorld>;
  beforeEach(() => {
    world = makeWorld();
  });

  it('lets the program that consumed least go first', () => {
    world.use('heavy', 1000, 1000);
    world.use('light', 10, 10);
    world.wait('heavy', 'light', 'new');
    expect(world.drain()).toBe('new light heavy');
  });

  it('weighs completion tokens twice, unless told otherwise', () => {
    const cases: [options: ProgramAwareOptions, order: string][] = [
      [{}, 'reader writer'],
      [{ promptTokenWeight: 3 }, 'writer reader'],
      [{ completionTokenWeight: 0.5 }, 'writer reader'],
    ];
    for (const [options, order] of cases) {
      const { use, wait, drain } = makeWorld(options);
      use('writer', 0, 100);
      use('reader', 150);
      wait('writer', 'reader');
      expect(drain()).toBe(order);
    }
  });

  it('halves service with each half-life, on the clock and not on visits', () => {
    world.use('a', 1000);
    world.clock.advance(240_000);
    world.use('b', 100);
    world.wait('b', 'a');
    // 1000 is down to 62.5.
    expect(world.drain()).toBe('a b');
  });

  it('keeps service for ever with a half-life of 0', () => {
    const { use, wait, drain, clock } = makeWorld({ lasHalfLifeSeconds: 0 });
    use('a', 1000);
    clock.advance(3_000_000);
    use('b', 999);
    wait('a', 'b');
    expect(drain()).toBe('b a');
  });

  it('breaks ties by the arrival of the heads, whichever flow became active first', () => {
    const { wait, drain } = makeWorld({ lasWeightService: 0, lasWeightHeadWait: 0 });
    wait('b', 'c', 'a', 'b');
    expect(drain()).toBe('b c a b');
  });

  it('charges while the response streams', () => {
    const lease = world.run('streaming');
    world.use('done', 50);
    lease.report({ promptTokens: 10 });
    lease.report({ completionTokens: 15 });
    world.wait('done', 'streaming');
    expect(world.drain()).toBe('streaming done');
    lease.report({ completionTokens: 30 });
    world.wait('streaming', 'done');
    expect(world.drain()).toBe('done streaming');
    lease.release();
  });

  it('takes back what was reported too high, and never owes anything', () => {
    const { run, use, wait, drain } = makeWorld({ lasHalfLifeSeconds: 0 });
    const lease = run('corrected');
    lease.report({ promptTokens: 1000 });
    lease.report({ promptTokens: 5 });
    lease.release();
    use('other', 10);
    wait('other', 'corrected');
    expect(drain()).toBe('corrected other');
  });

  it('charges the booked tokens of a request that ends without a report, or 1', () => {
    const { run, wait, drain } = makeWorld({ lasHalfLifeSeconds: 0 });
    run('booked', { tokens: 500 }).release();
    run('unknown').release();
    wait('booked', 'unknown', 'new');
    expect(drain()).toBe('new unknown booked');
  });

  it('does not charge the booked tokens when something was reported', () => {
    const lease = world.run('aborted', { tokens: 500 });
    lease.report({ promptTokens: 20 });
    lease.release();
    world.use('other', 100);
    world.wait('other', 'aborted');
    expect(world.drain()).toBe('aborted other');
  });

  it('knows a program in every band', () => {
    world.use('a', 1000, 0, 1);
    world.use('b', 10, 0, 0);
    world.wait('a', 'b');
    expect(world.drain()).toBe('b a');
  });

  it('remembers a program longer than the controller remembers its flow', () => {
    const { use, wait, drain, clock, flow } = makeWorld({ lasHalfLifeSeconds: 0 });
    use('a', 1000);
    clock.advance(10_000);
    use('b', 10);
    expect(flow.stats().flows).toBe(1);
    wait('a', 'b');
    expect(drain()).toBe('b a');
  });
});

describe('programAware, turn-priority', () => {
  it('brings the deepest session to its end first', () => {
    const { run, wait, drain } = makeWorld({ strategy: 'turn-priority' });
    for (let turn = 0; turn < 5; turn++) run('deep').release();
    run('shallow').release();
    wait('new', 'shallow', 'deep');
    expect(drain()).toBe('deep shallow new');
  });

  it('lets waiting make up for depth', () => {
    const { run, wait, drain, clock } = makeWorld({ strategy: 'turn-priority', turnPriorityInactivitySeconds: 0 });
    for (let turn = 0; turn < 3; turn++) run('deep').release();
    wait('new');
    clock.advance(59_000);
    wait('deep');
    expect(drain()).toBe('deep new');
    wait('new2');
    clock.advance(101_000);
    wait('deep');
    // Turn 5 against turn 1 and 101 s of waiting, worth 5.05.
    expect(drain()).toBe('new2 deep');
  });

  it('begins a session anew after a pause, and counts from there', () => {
    const { run, wait, drain, clock } = makeWorld({ strategy: 'turn-priority' });
    for (let turn = 0; turn < 5; turn++) run('back').release();
    clock.advance(121_000);
    run('back').release();
    for (let turn = 0; turn < 3; turn++) run('steady').release();
    wait('back', 'steady');
    expect(drain()).toBe('steady back');
  });

  it('does not take queueing for a pause', () => {
    const { run, wait, drain, clock } = makeWorld({ strategy: 'turn-priority' });
    for (let turn = 0; turn < 50; turn++) run('deep').release();
    wait('deep', 'new');
    clock.advance(300_000);
    expect(drain()).toBe('deep new');
  });

  it('gives no depth to fairness IDs that many clients share', () => {
    const { run, wait, drain } = makeWorld({ strategy: 'turn-priority' });
    for (let turn = 0; turn < 50; turn++) run('default-flow').release();
    for (let turn = 0; turn < 2; turn++) run('session').release();
    wait('default-flow', 'session');
    expect(drain()).toBe('session default-flow');
  });
});

describe('programAware', () => {
  it('forgets programs that were idle longer than the TTL, and no others', () => {
    const { policy, run, wait, drain, clock } = makeWorld({ evictionTtlSeconds: 10, evictionSweepSeconds: 1 });
    run('idle').release();
    const running = run('running');
    clock.advance(10_000);
    wait('waiting');
    drain();
    expect(policy.programs).toBe(3);
    clock.advance(1000);
    wait('waiting');
    drain();
    expect(policy.programs).toBe(2);
    clock.advance(20_000);
    running.release();
    clock.advance(11_000);
    run('last').release();
    expect(policy.programs).toBe(1);
  });

  it('looks for them once in each interval', () => {
    const { policy, run, clock } = makeWorld({ evictionTtlSeconds: 1, evictionSweepSeconds: 100 });
    run('a').release();
    clock.advance(50_000);
    run('b').release();
    expect(policy.programs).toBe(2);
    clock.advance(50_000);
    run('b').release();
    expect(policy.programs).toBe(1);
  });

  it('stays within bounds when every request brings a new fairness ID', () => {
    const { policy, run } = makeWorld({ evictionTtlSeconds: 0 });
    for (let i = 0; i < 12_000; i++) run(`invented-${i}`).release();
    expect(policy.programs).toBe(10_000);
  });

  it('tells how evenly programs waited', () => {
    const { policy, wait, drain, clock } = makeWorld();
    expect(policy.fairnessIndex).toBe(1);
    wait('a');
    clock.advance(20_000);
    wait('b');
    clock.advance(10_000);
    drain();
    // Mean waits of 30 s and 10 s.
    expect(policy.fairnessIndex).toBeCloseTo(0.8, 12);
  });

  it('survives being put in place of another policy and back', () => {
    const policy: ProgramAwarePolicy = programAware();
    const clock = new ManualClock();
    const flow = new FlowController({
      clock,
      saturationDetector: concurrencyDetector({ maxConcurrency: 2 }),
      bands: [{ priority: 0 }],
    });
    const options = { clock, saturationDetector: concurrencyDetector({ maxConcurrency: 2 }) };
    const lease = leaseOf(flow.tryEnqueue({ byteSize: 1 }, { fairnessId: 'a' }));
    flow.reconfigure({ ...options, bands: [{ priority: 0, fairness: policy }] });
    const tracked = leaseOf(flow.tryEnqueue({ byteSize: 1 }, { fairnessId: 'a' }));
    lease.release();
    flow.reconfigure({ ...options, bands: [{ priority: 0 }] });
    tracked.release();
    flow.reconfigure({ ...options, bands: [{ priority: 0, fairness: policy }] });
    expect(flow.tryEnqueue({ byteSize: 1 }, { fairnessId: 'a' })?.type).toBe('Dispatched');
  });

  it('names every wrong parameter', () => {
    expect(() => programAware({ lasHalfLifeSeconds: -1, evictionSweepSeconds: 0 })).toThrow(
      /lasHalfLifeSeconds[\s\S]*evictionSweepSeconds/,
    );
    expect(() => programAware({ strategy: 'drr' as 'las' })).toThrow(/"las", "turn-priority"/);
  });
});

/** The worked examples of docs/policies/program-aware-fairness.md. */
describe('docs/policies/program-aware-fairness.md', () => {
  it('scores as the page says, las', () => {
    const cases: [options: ProgramAwareOptions, order: string][] = [
      [{}, 'chat agent batch'],
      [{ lasWeightHeadWait: 1.2 }, 'batch agent chat'],
    ];
    for (const [options, order] of cases) {
      const { use, wait, drain, clock } = makeWorld(options);
      use('batch', 8000, 2000);
      clock.advance(60_000);
      use('agent', 1000, 500);
      wait('batch');
      clock.advance(3000);
      wait('agent');
      clock.advance(1000);
      wait('chat');
      expect(drain()).toBe(order);
    }
  });

  it('scores as the page says, turn-priority', () => {
    const { run, wait, drain, clock } = makeWorld({ strategy: 'turn-priority' });
    for (let turn = 0; turn < 3; turn++) run('agent').release();
    wait('newcomer');
    clock.advance(50_000);
    wait('agent');
    expect(drain()).toBe('agent newcomer');
    wait('late');
    clock.advance(81_000);
    wait('agent');
    expect(drain()).toBe('late agent');
  });
});

describe('programAware, what is counted', () => {
  it('charges each report with what came since the last one, prompt or completion alone', () => {
    const { run, wait, drain } = makeWorld({ lasHalfLifeSeconds: 0, lasWeightHeadWait: 0 });
    const lease = run('spends');
    lease.report({ promptTokens: 10, completionTokens: 1 });
    lease.report({ promptTokens: 10, completionTokens: 200 });
    lease.release();
    const other = run('spends less');
    other.report({ promptTokens: 0, completionTokens: 150 });
    other.release();
    wait('spends', 'spends less');
    expect(drain()).toBe('spends less spends');
  });

  it('charges an answer that is reported without its prompt, and not what was booked as well', () => {
    const { run, use, wait, drain } = makeWorld({ lasHalfLifeSeconds: 0, lasWeightHeadWait: 0 });
    const lease = run('answered', { tokens: 500 });
    lease.report({ completionTokens: 10 });
    lease.release();
    use('other', 100);
    wait('other', 'answered');
    expect(drain()).toBe('answered other');
  });

  it('takes reports under every strategy', () => {
    const { flow, use } = makeWorld({ strategy: 'turn-priority' });
    use('a', 10, 10);
    expect(flow.stats().pluginErrors).toBe(0);
  });

  it('has an index over the programs that have waited alone', () => {
    const { policy, clock, flow, run, wait, drain } = makeWorld();
    run('leaves').release();
    wait('a');
    clock.advance(100);
    wait('b');
    clock.advance(100);
    const abort = new AbortController();
    void flow.enqueue({ byteSize: 1, signal: abort.signal }, { fairnessId: 'cancelled', priority: 1 });
    abort.abort();
    expect(policy.programs).toBe(4);
    expect(policy.fairnessIndex).toBe(1);
    drain();
    // Mean waits of 200, 100 and 0 ms; the one that was cancelled never waited to its end.
    expect(policy.programs).toBe(4);
    expect(policy.fairnessIndex).toBeCloseTo(300 ** 2 / (3 * (200 ** 2 + 100 ** 2)), 9);
  });
});

describe('programAware, turn-priority, between equals', () => {
  it('the request that came first goes, of those of one instant', () => {
    const { flow, wait, drain } = makeWorld({ strategy: 'turn-priority', turnPriorityTimeWeight: 0 });
    const abort = new AbortController();
    void flow.enqueue({ byteSize: 1, signal: abort.signal }, { fairnessId: 'a', priority: 0 });
    wait('b', 'a');
    abort.abort();
    expect(drain()).toBe('b a');
  });

  it('the request that waited longer goes, though its flow became active later', () => {
    const { clock, flow, wait, drain } = makeWorld({ strategy: 'turn-priority', turnPriorityTimeWeight: 0 });
    const abort = new AbortController();
    void flow.enqueue({ byteSize: 1, signal: abort.signal }, { fairnessId: 'a', priority: 0 });
    clock.advance(5);
    wait('b');
    clock.advance(5);
    wait('a');
    abort.abort();
    expect(drain()).toBe('b a');
  });
});
