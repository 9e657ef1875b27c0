/**
 * States that a seeded run exists for, counted: a run that never came to one of them proves less than it seems to.
 * Source: the "sometimes" assertions of Antithesis, and `buggify` of FoundationDB before them.
 */
export class Sometimes {
  private readonly counts: Map<string, number>;

  constructor(states: readonly string[]) {
    this.counts = new Map(states.map((state) => [state, 0]));
  }

  saw(state: string): void {
    const count = this.counts.get(state);
    if (count === undefined) throw new Error(`no such state: ${state}`);
    this.counts.set(state, count + 1);
  }

  get never(): readonly string[] {
    return [...this.counts].flatMap(([state, count]) => (count === 0 ? [state] : []));
  }

  /** A line for each state, the rarest first. */
  get report(): string {
    const rows = [...this.counts].sort(([, a], [, b]) => a - b);
    return rows.map(([state, count]) => `${String(count).padStart(9)}  ${state}`).join('\n');
  }

  /** What a program prints at its end; it fails where something was never reached. */
  tell(): void {
    console.info(`reached, so many times:\n${this.report}`);
    if (this.never.length === 0) return;
    console.error(`never reached: ${this.never.join('; ')}`);
    process.exitCode = 1;
  }
}
