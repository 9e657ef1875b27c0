/** The table of what faults cost says what the torture asserts, and what it measured is within that. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { boundsTable, readBounds, statedCells, writeBounds } from './bounds.js';
import { scenarios } from './scenarios.js';
import { limit } from './spans.js';

const page = new URL('../../../docs/scale-out.md', import.meta.url);
const rows = readBounds(readFileSync(page, 'utf8'));

describe('the table of what faults cost', () => {
  it('has a row for each fault, with the bounds that the torture asserts', () => {
    expect(rows.map((cells) => cells.slice(0, 3))).toEqual(scenarios.map(statedCells));
  });

  it.each(rows)('has measured runs of: %s', (...[, over, , ...measured]) => {
    const [runs = 0, mostOver = Number.NaN, backMs = Number.NaN] = measured.map(Number);
    expect(measured.length).toBe(3);
    expect(runs).toBeGreaterThan(0);
    expect(mostOver).toBeGreaterThanOrEqual(0);
    if (over === '0') expect(mostOver).toBe(0);
    expect(backMs).toBeLessThan(60_000);
  });

  it('states bounds of which none is above twice the limit', () => {
    const extent = { counter: 'requests', limit, replicas: 2 } as const;
    for (const { over } of scenarios) expect(over.most(extent)).toBeLessThanOrEqual(limit);
  });

  it('is not written of runs that leave a fault out', () => {
    const [scenario] = scenarios as [(typeof scenarios)[number]];
    const some = [{ scenario, runs: 1, over: 0, backMs: 12.4 }];
    expect(boundsTable(some).split('\n').at(-1)).toBe('|no fault|0|0|1|0|12|');
    expect(() => writeBounds('never.md', some)).toThrow('expected runs of every fault');
  });

  it('is missed where a page has none', () => {
    expect(() => readBounds('nothing')).toThrow('no table between');
  });
});
