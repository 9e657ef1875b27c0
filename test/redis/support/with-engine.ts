/** Runs suites against every engine that is installed. */
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe } from 'vitest';
import { Engine, type EngineKind, engineKinds } from './engines.js';

/** `engine` is started once for the suite. */
export function describeWithEngines(
  name: string,
  suite: (engine: () => Engine) => void,
  options: readonly string[] = [],
): void {
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

/** For suites that one engine is enough for, with a client of it. `timeout`: of each test, ms. */
export function describeWithClient(
  name: string,
  { timeout, kind = engineKinds[0] }: { readonly timeout: number; readonly kind?: EngineKind | undefined },
  suite: (redis: () => Redis) => void,
): void {
  describe.runIf(kind !== undefined)(name, { timeout }, () => {
    let engine: Engine;
    let redis: Redis;
    beforeAll(async () => {
      engine = await Engine.start(kind!);
      redis = new Redis(engine.port);
    });
    afterAll(async () => {
      redis.disconnect();
      await engine.stop();
    });
    suite(() => redis);
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
