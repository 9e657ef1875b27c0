import { beforeAll, describe, expect, it } from 'vitest';
import { runProbe } from './run-probe.js';

/**
 * What a request may leave behind, bytes: rests of the tables and counters that all share. Each of them carries about a
 * thousand.
 */
const least = 40;

describe('a request that has ended', () => {
  let outliving: Record<'inSet' | 'uploads' | 'streams' | 'passing' | 'evictable' | 'reporting' | 'waiting', number>;

  beforeAll(async () => {
    outliving = await runProbe(new URL('garbage-probe.ts', import.meta.url));
  }, 300_000);

  it.each([
    ['passed through', 'passing'],
    ['has waited', 'waiting'],
    ['could be evicted', 'evictable'],
    ['went to a server that reports', 'reporting'],
    ['was uploading', 'uploads'],
    ['came by HTTP/2', 'streams'],
  ] as const)('and %s leaves with a short collection of the heap', (_, kind) => {
    expect(outliving[kind]).toBeLessThan(least);
  });

  it('would stay for a collection of everything if a Set had held it', () => {
    expect(outliving.inSet).toBeGreaterThan(least);
  });
});
