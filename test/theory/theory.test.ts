/**
 * Plays every row of every file. A kind that nobody knows fails. Files of another folder:
 * `THEORY_DIR=<folder> npx vitest run test/theory`.
 */
import { describe, expect, it } from 'vitest';
import { readTheoryFiles } from './read-theory.js';
import { apf } from './runners/apf.js';
import { bounds } from './runners/bounds.js';
import { dealer, isolation } from './runners/dealer.js';
import { jain, lift } from './runners/figures.js';
import { gcra } from './runners/gcra.js';
import { limiters } from './runners/limiters.js';
import { realTrace, weighted } from './runners/trace.js';

type Register = (rows: never, all: Readonly<Record<string, never>>) => void;

/** Each registers one test for each row. */
const runners: Readonly<Record<string, Register>> = {
  vtc_real_trace: realTrace,
  vtc_lift: lift,
  vtc_paper: weighted,
  apf,
  jain,
  drr_sfq_vtc_bounds: bounds,
  dealer,
  shuffle_isolation: isolation,
  gcra,
  limiter_closed_loop: limiters,
};

for (const { name, kinds } of readTheoryFiles()) {
  describe(name, () => {
    it('has no kind that nobody knows', () => {
      expect(Object.keys(kinds).filter((kind) => runners[kind] === undefined)).toEqual([]);
    });

    for (const [kind, rows] of Object.entries(kinds)) describe(kind, () => runners[kind]?.(rows, kinds));
  });
}
