/** One line on a terminal: how far a run is, and how long the rest may take. Nothing where there is no terminal. */

const intervalMs = 100;

export interface ProgressOutput {
  readonly isTTY?: boolean | undefined;
  write(text: string): unknown;
}

export class ProgressLine {
  private readonly output: ProgressOutput;
  private readonly now: () => number;
  private readonly startedAtMs: number;
  private shownAtMs = -Infinity;

  constructor(output: ProgressOutput, now: () => number = () => performance.now()) {
    this.output = output;
    this.now = now;
    this.startedAtMs = now();
  }

  /** `done` 0…1 */
  show(what: string, done: number): void {
    const nowMs = this.now();
    if (this.output.isTTY !== true || nowMs - this.shownAtMs < intervalMs) return;
    this.shownAtMs = nowMs;
    const leftMs = done > 0.01 ? ((nowMs - this.startedAtMs) / done) * (1 - done) : NaN;
    const left = Number.isNaN(leftMs) ? '' : `, about ${Math.ceil(leftMs / 1000)} s left`;
    this.output.write(`\r\u001b[K${what} ${Math.floor(done * 100)} %${left}`);
  }

  clear(): void {
    if (this.output.isTTY === true) this.output.write('\r\u001b[K');
  }
}
