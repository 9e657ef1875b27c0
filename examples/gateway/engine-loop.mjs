// @ts-check
// Lets an engine run in time: one timer per step, none while idle.

/** Behind by more than this, the loop stops catching up: the machine is too slow for the steps it plays. */
const maxLagMs = 250;

/**
 * Returns `wake`, to be called after every submission. A timer that fires late does not make the engine slower: each
 * step is due one duration after the last one was *due*.
 * @param {Pick<import('./engine.mjs').Engine, 'beginStep' | 'finishStep'>} engine
 * @param {{ nowMs(): number, after(delayMs: number, then: () => void): void }} clock
 */
export function driveEngine(engine, clock) {
  let isStepping = false;
  let dueAtMs = 0;

  function begin() {
    const durationMs = engine.beginStep();
    isStepping = durationMs > 0;
    if (!isStepping) return;
    dueAtMs += durationMs;
    clock.after(Math.max(0, dueAtMs - clock.nowMs()), end);
  }

  function end() {
    engine.finishStep();
    dueAtMs = Math.max(dueAtMs, clock.nowMs() - maxLagMs);
    begin();
  }

  return function wake() {
    if (isStepping) return;
    dueAtMs = clock.nowMs();
    begin();
  };
}
