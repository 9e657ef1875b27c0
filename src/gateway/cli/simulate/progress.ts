/** One line on a terminal: how far a run is, and how long the rest may take. Nothing where there is no terminal. */

const intervalMs = 100;

type ProgressOutput = { readonly isTTY?: boolean | undefined; write(text: string): unknown };
/** `done`: 0…1. */
export type ProgressLine = { show(what: string, done: number): void; clear(): void };

export function progressLine(output: ProgressOutput, now = (): number => performance.now()): ProgressLine {
  const startedAtMs = now();
  let shownAtMs = -Infinity;
  return {
    show(what, done) {
      const nowMs = now();
      if (output.isTTY !== true || nowMs - shownAtMs < intervalMs) return;
      shownAtMs = nowMs;
      const leftMs = done > 0.01 ? ((nowMs - startedAtMs) / done) * (1 - done) : NaN;
      const left = Number.isNaN(leftMs) ? '' : `, about ${Math.ceil(leftMs / 1000)} s left`;
      output.write(`\r\u001b[K${what} ${Math.floor(done * 100)} %${left}`);
    },
    clear() {
      if (output.isTTY === true) output.write('\r\u001b[K');
    },
  };
}
