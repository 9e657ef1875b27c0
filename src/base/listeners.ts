/** Who hears of something. One entry for each subscription, though two may share a function. */
export class Listeners<A extends readonly unknown[] = []> {
  private readonly entries = new Set<(...told: A) => void>();

  /** Returns what stops it. */
  readonly subscribe = (listener: (...told: A) => void): (() => void) => {
    const entry = (...told: A): void => listener(...told);
    this.entries.add(entry);
    return () => void this.entries.delete(entry);
  };

  readonly announce = (...told: A): void => {
    for (const entry of [...this.entries]) entry(...told);
  };
}
