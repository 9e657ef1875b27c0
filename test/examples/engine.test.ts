import { describe, expect, it } from 'vitest';
import { Engine, type Sequence } from '../../examples/gateway/engine.mjs';
import { driveEngine } from '../../examples/gateway/engine-loop.mjs';
import { type Arrival, schedule, tenants } from '../../examples/gateway/tenants.mjs';

const ignoreTokens = (): void => {};

/** Runs steps until the engine is idle; returns the time that passed in the engine. */
function drain(engine: Engine): number {
  let elapsedMs = 0;
  for (let durationMs = engine.beginStep(); durationMs > 0; durationMs = engine.beginStep()) {
    elapsedMs += durationMs;
    engine.finishStep();
  }
  return elapsedMs;
}

function expectBalance({ running, waiting, usedBlocks, options }: Engine): void {
  expect(usedBlocks).toBe(running.reduce((sum, { blocks }) => sum + blocks, 0));
  expect(usedBlocks).toBeGreaterThanOrEqual(0);
  expect(usedBlocks).toBeLessThanOrEqual(options.kvBlocks);
  expect(running.length).toBeLessThanOrEqual(options.maxNumSeqs);
  expect(running.filter(({ computed, blocks }) => computed > blocks * options.blockTokens)).toEqual([]);
  expect(waiting.filter(({ computed, blocks }) => computed !== 0 || blocks !== 0)).toEqual([]);
}

/** Keeps `inFlight` requests of the demo's mix in one engine for a minute of its time. */
function runClosedLoop(inFlight: number): { requestsPerSecond: number; tokensPerSecond: number; preemptions: number } {
  const mix = schedule(3, 300_000);
  const engine = new Engine();
  let elapsedMs = 0;
  let next = 0;
  const add = (): void => {
    const { promptTokens, outputTokens } = mix[next] as Arrival;
    next += 1;
    engine.submit(promptTokens, outputTokens, ({ state }) => state === 'finished' && add());
  };
  while (next < inFlight) add();
  while (elapsedMs < 60_000) {
    elapsedMs += engine.beginStep();
    engine.finishStep();
  }
  const { finished, generatedTokens, preemptions } = engine.totals;
  return { requestsPerSecond: finished / 60, tokensPerSecond: generatedTokens / 60, preemptions };
}

describe('Engine', () => {
  describe('batching', () => {
    it('computes all running sequences in one step and gives each a token', () => {
      const engine = new Engine({ maxBatchedTokens: 1_000 });
      const sequences = [100, 200, 300].map((promptTokens) => engine.submit(promptTokens, 5, ignoreTokens));
      engine.beginStep();
      engine.finishStep();
      expect(sequences.map(({ generated }) => generated)).toEqual([1, 1, 1]);
    });

    it('reports every token once, and the last with the sequence finished', () => {
      const engine = new Engine();
      const seen: [number, string][] = [];
      engine.submit(40, 3, ({ generated, state }) => seen.push([generated, state]));
      drain(engine);
      expect(seen).toEqual([
        [1, 'running'],
        [2, 'running'],
        [3, 'finished'],
      ]);
    });

    it('prefills a long prompt in chunks of what the step has left, while others go on decoding', () => {
      const engine = new Engine({ maxBatchedTokens: 512 });
      const decoding = engine.submit(10, 50, ignoreTokens);
      engine.beginStep();
      engine.finishStep();
      const long = engine.submit(1_500, 1, ignoreTokens);
      const progress: [number, number][] = [];
      for (let step = 0; step < 3; step += 1) {
        engine.beginStep();
        engine.finishStep();
        progress.push([decoding.generated, long.computedOnce]);
      }
      expect(progress).toEqual([
        [2, 511],
        [3, 1_022],
        [4, 1_500],
      ]);
      expect(long.state).toBe('finished');
    });

    it('admits no more than maxNumSeqs, in order of arrival', () => {
      const engine = new Engine({ maxNumSeqs: 2 });
      const sequences = [1, 2, 3].map(() => engine.submit(10, 5, ignoreTokens));
      engine.beginStep();
      expect(sequences.map(({ state }) => state)).toEqual(['running', 'running', 'waiting']);
    });

    it('takes longer for a larger batch and for a fuller cache', () => {
      const decodeStepMs = (sequences: number, promptTokens: number): number => {
        const engine = new Engine({ maxBatchedTokens: 100_000 });
        for (let i = 0; i < sequences; i += 1) engine.submit(promptTokens, 5, ignoreTokens);
        engine.beginStep();
        engine.finishStep();
        return engine.beginStep();
      };
      expect(decodeStepMs(10, 100)).toBeGreaterThan(decodeStepMs(5, 100));
      expect(decodeStepMs(5, 1_000)).toBeGreaterThan(decodeStepMs(5, 100));
    });

    it('does nothing when nobody asks', () => {
      expect(new Engine().beginStep()).toBe(0);
    });

    it('refuses what could never fit its cache', () => {
      const engine = new Engine({ kvBlocks: 10, blockTokens: 16 });
      expect(() => engine.submit(150, 11, ignoreTokens)).toThrow(RangeError);
      expect(() => engine.submit(0, 1, ignoreTokens)).toThrow(RangeError);
      engine.submit(150, 10, ignoreTokens);
      drain(engine);
      expect(engine.totals.finished).toBe(1);
    });
  });

  describe('preemption', () => {
    it('takes the youngest out when the cache is full, which then computes everything again', () => {
      const engine = new Engine({ kvBlocks: 8, blockTokens: 16 });
      const old = engine.submit(60, 60, ignoreTokens);
      const young = engine.submit(60, 60, ignoreTokens);
      while (engine.totals.preemptions === 0) {
        engine.beginStep();
        expectBalance(engine);
        engine.finishStep();
      }
      expect([old.state, young.state, young.blocks]).toEqual(['running', 'waiting', 0]);
      drain(engine);
      expect([old.generated, young.generated]).toEqual([60, 60]);
      expect(engine.totals).toMatchObject({ finished: 2, promptTokens: 120, generatedTokens: 120 });
      expect(engine.totals.recomputedTokens).toBeGreaterThan(60);
    });

    it('puts a preempted sequence in front of those that wait', () => {
      const engine = new Engine({ kvBlocks: 8, blockTokens: 16 });
      const [, young] = [1, 2, 3].map(() => engine.submit(60, 60, ignoreTokens));
      while (engine.totals.preemptions === 0) {
        engine.beginStep();
        engine.finishStep();
      }
      expect(engine.waiting[0]).toBe(young);
    });
  });

  describe('abort', () => {
    it('frees the blocks at once, also in the middle of a step, and no further token comes', () => {
      const engine = new Engine();
      let tokens = 0;
      const sequence = engine.submit(500, 50, () => {
        tokens += 1;
      });
      engine.beginStep();
      engine.finishStep();
      engine.beginStep();
      expect(engine.usedBlocks).toBeGreaterThan(0);
      engine.abort(sequence);
      expect(engine.usedBlocks).toBe(0);
      engine.finishStep();
      expect([tokens, engine.beginStep()]).toEqual([1, 0]);
    });

    it('takes a waiting sequence out of the line, and is harmless when it comes too late or twice', () => {
      const engine = new Engine({ maxNumSeqs: 1 });
      const [first, second] = [1, 2].map(() => engine.submit(10, 1, ignoreTokens)) as [Sequence, Sequence];
      engine.beginStep();
      engine.abort(second);
      engine.abort(second);
      engine.finishStep();
      engine.abort(first);
      expect([first.state, second.state]).toEqual(['finished', 'aborted']);
      expect(engine.totals).toMatchObject({ finished: 1, aborted: 1 });
    });
  });

  it('keeps its cache in balance through a long random history, and ends empty', () => {
    const engine = new Engine({ kvBlocks: 60, maxBatchedTokens: 128, maxNumSeqs: 12 });
    const live: Sequence[] = [];
    let chance = 1;
    const random = (below: number): number => {
      chance = (chance * 48_271) % 2_147_483_647;
      return chance % below;
    };
    for (let step = 0; step < 3_000; step += 1) {
      if (random(12) === 0) live.push(engine.submit(1 + random(400), 1 + random(100), ignoreTokens));
      if (random(40) === 0) engine.abort(live[random(live.length)] ?? engine.submit(1, 1, ignoreTokens));
      engine.beginStep();
      expectBalance(engine);
      if (random(40) === 0) engine.abort(live[random(live.length)] ?? engine.submit(1, 1, ignoreTokens));
      engine.finishStep();
      expectBalance(engine);
    }
    expect(engine.totals.preemptions).toBeGreaterThan(100);
    drain(engine);
    expect([engine.usedBlocks, engine.running.length, engine.waiting.length]).toEqual([0, 0, 0]);
    const finished = live.filter(({ state }) => state === 'finished');
    expect(finished.filter(({ generated, maxTokens }) => generated !== maxTokens)).toEqual([]);
  });
});

describe("the demo's numbers", () => {
  it('put the best throughput near 15 in flight per server, and lose a good part of it when admission is unbounded', () => {
    const [starved, gated, flooded] = [runClosedLoop(5), runClosedLoop(15), runClosedLoop(60)];
    expect(gated.tokensPerSecond).toBeGreaterThan(1.2 * starved.tokensPerSecond);
    expect(flooded.tokensPerSecond).toBeLessThan(0.88 * gated.tokensPerSecond);
    expect(flooded.preemptions).toBeGreaterThan(5 * (gated.preemptions + 1));
  });

  it('offer about 1.5 times what three servers can do', () => {
    const offered = tenants.reduce((sum, { requestsPerSecond }) => sum + requestsPerSecond, 0);
    const ratio = offered / (3 * runClosedLoop(15).requestsPerSecond);
    expect(ratio).toBeGreaterThan(1.35);
    expect(ratio).toBeLessThan(1.65);
  });

  it('draw the same arrivals from the same seed', () => {
    expect(schedule(7, 5_000)).toEqual(schedule(7, 5_000));
    expect(schedule(7, 5_000)).not.toEqual(schedule(8, 5_000));
  });
});

describe('driveEngine', () => {
  /** An engine of `steps` steps of 10 ms, and a clock that fires its timers as late as told. */
  function setUp(steps: number) {
    let left = steps;
    let nowMs = 1_000;
    const timers: { dueAtMs: number; then: () => void }[] = [];
    const engine = {
      beginStep: () => (left > 0 ? 10 : 0),
      finishStep: () => {
        left -= 1;
      },
    };
    const clock = {
      nowMs: () => nowMs,
      after: (delayMs: number, then: () => void) => void timers.push({ dueAtMs: nowMs + delayMs, then }),
    };
    const fire = (lateMs: number): void => {
      const timer = timers.shift();
      nowMs = (timer?.dueAtMs ?? nowMs) + lateMs;
      timer?.then();
    };
    const restart = (): void => {
      left = steps;
    };
    return { engine, clock, timers, fire, restart, now: () => nowMs };
  }

  it('has one timer while there is work, none without, and starts again when woken', () => {
    const { engine, clock, timers, fire, restart } = setUp(2);
    const wake = driveEngine(engine, clock);
    wake();
    wake();
    expect(timers).toHaveLength(1);
    fire(0);
    fire(0);
    expect(timers).toHaveLength(0);
    restart();
    wake();
    expect(timers).toHaveLength(1);
  });

  it('makes up for timers that fire late', () => {
    const { engine, clock, timers, fire, now } = setUp(5);
    driveEngine(engine, clock)();
    for (let step = 1; step <= 5; step += 1) fire(step < 5 ? 8 : 0);
    expect(timers).toHaveLength(0);
    expect(now()).toBeLessThanOrEqual(1_058);
  });
});
