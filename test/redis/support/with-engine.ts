/** Runs suites against every engine that is installed. */
import { afterAll, beforeAll, describe } from 'vitest';
import { Engine, engineKinds } from './engines.js';

/** `engine` is started once for the suite. */
export function describeWithEngines(name: string, suite: (engine: () => Engine) => void, options: readonly string[] = []): void {
  describe.runIf(engineKinds.length > 0)(name, () => {
    for (const kind of engineKinds) {
      describe(`on ${kind.name}`, () => {
        let engine: Engine;
        beforeAll(async () => {
          engine = await Engine.start(kind, options);
        });
        afterAll(() => engine.stop());
        suite(() => engine);
      });
    }
  });
}

/** Resolves when `isTrue`; rejects with what was seen after `withinMs`. */
export async function until(isTrue: () => boolean, what: () => unknown = () => '', withinMs = 30_000): Promise<void> {
  const deadline = Date.now() + withinMs;
  while (!isTrue()) {
    if (Date.now() > deadline) throw new Error(`waited ${withinMs} ms in vain: ${JSON.stringify(what())}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
