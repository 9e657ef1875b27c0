/** A random history as a value: it can be played, made smaller, written down and played again. */
import { Random } from './random.js';
import { type Step, stepKinds, World, type WorldOptions } from './world.js';

export interface History extends WorldOptions {
  readonly steps: readonly Step[];
}

/** Which step broke something, and what; `steps.length` stands for the end, where everything is closed. */
export interface Breach {
  readonly atStep: number;
  readonly faults: readonly string[];
}

const longest = 90;

/** The history of a seed, every second one tangled; `hasNonsense`: with plugins that break their contracts. */
export function historyOf(seed: number, hasNonsense = false, isTangled: boolean = seed % 2 === 0): History {
  const random = new Random(seed);
  const steps = Array.from({ length: 1 + random.int(longest) }, () => ({
    kind: random.pick(stepKinds),
    salt: random.int(2 ** 31),
  }));
  return { seed: random.int(2 ** 31), hasNonsense, isTangled, steps };
}

/** Plays a history to its first breach; undefined when there is none. What a step throws is one. */
export async function play({ steps, ...options }: History): Promise<Breach | undefined> {
  let atStep = 0;
  try {
    const world = new World(options);
    for (; atStep < steps.length; atStep++) {
      await world.perform(steps[atStep] as Step);
      if (world.faults.length > 0) return { atStep, faults: world.faults };
    }
    await world.end();
    return world.faults.length > 0 ? { atStep, faults: world.faults } : undefined;
  } catch (error) {
    return { atStep, faults: [error instanceof Error ? (error.stack ?? error.message) : String(error)] };
  }
}

/**
 * A smaller history that breaks too, found by leaving out ever smaller stretches. Plays the history at most `tries`
 * times.
 */
export async function shrink(history: History, breach: Breach, tries = 500): Promise<History> {
  let smallest: History = { ...history, steps: history.steps.slice(0, breach.atStep + 1) };
  for (let size = Math.ceil(smallest.steps.length / 2); size >= 1 && tries > 0; ) {
    let isSmaller = false;
    for (let from = 0; from < smallest.steps.length && tries > 0; tries--) {
      const steps = [...smallest.steps.slice(0, from), ...smallest.steps.slice(from + size)];
      const found = await play({ ...smallest, steps });
      if (found === undefined) from += size;
      else {
        smallest = { ...smallest, steps: steps.slice(0, found.atStep + 1) };
        isSmaller = true;
      }
    }
    if (!isSmaller || size > smallest.steps.length)
      size = size === 1 ? 0 : Math.floor(Math.min(size, smallest.steps.length) / 2);
  }
  return smallest;
}
