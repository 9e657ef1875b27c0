/**
 * Vectors like those of the project's files, with other keys and values of their kinds: a runner that plays only what
 * it has seen would call others wrong. Each passes, or is one of the listed deviations.
 */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { deviationOf } from './support/deviations.js';
import { play } from './support/play.js';
import type { Vector } from './support/vectors.js';

const text = readFileSync(new URL('variations.json', import.meta.url), 'utf8');
const { vectors }: { vectors: (Omit<Vector, 'raw' | 'tolerance'> & { tolerance?: number })[] } = JSON.parse(text);

it.each(vectors.map((vector) => [vector.id, vector.kind, vector] as const))('%s %s', async (_id, _kind, raw) => {
  const vector: Vector = { ...raw, tolerance: raw.tolerance, raw };
  const { type } = await play(vector);
  expect(type).toBe(deviationOf(vector) === undefined ? 'same' : 'differs');
});
