import { expect, it } from 'vitest';
import { BandTable } from '../../src/tiers/band-table.js';
import type { PriorityBand } from '../../src/tiers/priority-band.js';
import { Random } from '../property/random.js';

it('keeps all bands and the waiting ones in descending order, through a long history', () => {
  const random = new Random(12);
  const table = new BandTable();
  const known = new Map<number, PriorityBand>();
  const waiting = new Set<number>();
  const descending = (priorities: Iterable<number>): number[] => [...priorities].sort((a, b) => b - a);
  for (let i = 0; i < 3000; i++) {
    const priority = random.int(40) - 20;
    const band = known.get(priority);
    const { version } = table;
    if (band === undefined) {
      // The table needs no more of a band than its priority.
      const made = { priority } as PriorityBand;
      known.set(priority, made);
      table.add(made);
    } else if (waiting.has(priority)) {
      table.deactivated(band);
      waiting.delete(priority);
    } else if (random.chance(0.6)) {
      table.activated(band);
      waiting.add(priority);
    } else {
      table.remove(band);
      known.delete(priority);
    }
    expect(table.version).toBeGreaterThan(version);
    expect(table.size).toBe(known.size);
    expect(table.get(priority)).toBe(known.get(priority));
    expect(table.all().map((each) => each.priority)).toEqual(descending(known.keys()));
    expect(table.highestWaiting?.priority).toBe(descending(waiting)[0]);
  }
});
