/** The gate of a scenario from a log: the most that was in flight, whatever a log's times are rounded to. */
import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../../src/base/seeded-random.js';
import { readTrace, scenarioFromTrace } from '../../../src/simulator/index.js';

interface Seated {
  readonly arrivedAtMs: number;
  /** When its body was whole, and its wait began. */
  readonly askedAtMs: number;
  readonly seatedAtMs: number;
  readonly endedAtMs: number;
}

/** Requests of 4 seats, each seat taken again in the instant in which it is left. Times are exact, and no whole ms. */
function backToBack(seed: number, uploadMs: number): Seated[] {
  const random = seededRandom(seed);
  const freeAtMs = [0.3, 0.3, 0.3, 0.3];
  return Array.from({ length: 400 }, () => {
    const seat = freeAtMs.indexOf(Math.min(...freeAtMs));
    const seatedAtMs = freeAtMs[seat]!;
    const askedAtMs = seatedAtMs - random() * 20;
    const endedAtMs = seatedAtMs + 5 + random() * 40;
    freeAtMs[seat] = endedAtMs;
    return { arrivedAtMs: askedAtMs - random() * uploadMs, askedAtMs, seatedAtMs, endedAtMs };
  });
}

/** As the gateway writes it: instants are cut off, and durations rounded. */
function lineOf({ arrivedAtMs, askedAtMs, seatedAtMs, endedAtMs }: Seated, tellsSeat: boolean): string {
  return JSON.stringify({
    time: new Date(Math.floor(Date.UTC(2026, 0, 1) + endedAtMs)).toISOString(),
    event: 'request',
    completionTokens: 5,
    queuedMs: Math.round(seatedAtMs - askedAtMs),
    heldMs: tellsSeat ? Math.round(endedAtMs - seatedAtMs) : undefined,
    durationMs: Math.round(endedAtMs - arrivedAtMs),
  });
}

function seatsOf(requests: readonly Seated[], tellsSeat = true): unknown {
  const { rows } = readTrace(requests.map((request) => lineOf(request, tellsSeat)).join('\n'));
  const { plugins } = scenarioFromTrace(rows) as { plugins: { parameters: unknown }[] };
  return plugins[0]?.parameters;
}

describe('the gate of a log that four seats made', () => {
  const seeds = Array.from({ length: 50 }, (_, seed) => seed + 1);

  it('has four, though rounded times seem to overlap', () => {
    for (const seed of seeds) expect(seatsOf(backToBack(seed, 0)), `seed ${seed}`).toEqual({ maxConcurrency: 4 });
  });

  it('has four where bodies came slowly, because a line says how long the seat was held', () => {
    for (const seed of seeds) expect(seatsOf(backToBack(seed, 500)), `seed ${seed}`).toEqual({ maxConcurrency: 4 });
  });

  it('has four without that figure, where bodies came at once', () => {
    for (const seed of seeds)
      expect(seatsOf(backToBack(seed, 0), false), `seed ${seed}`).toEqual({ maxConcurrency: 4 });
  });

  it('has as many as there were, if those overlapped for 3 ms', () => {
    const five = Array.from({ length: 5 }, (_, index) => {
      const seatedAtMs = 100 + index * 10;
      return { arrivedAtMs: seatedAtMs, askedAtMs: seatedAtMs, seatedAtMs, endedAtMs: 143 + index };
    });
    expect(seatsOf(five)).toEqual({ maxConcurrency: 5 });
  });
});
