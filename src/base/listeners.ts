/** Who hears of something. One entry for each subscription, though two may share a function. */
export class Listeners<A extends readonly unknown[] = []> {
  /** Never changed, because `announce` may be in the middle of it. */
  private entries: readonly ((...told: A) => void)[] = [];

  /** Returns what stops it. */
  readonly subscribe = (listener: (...told: A) => void): (() => void) => {
    const entry = (...told: A): void => listener(...told);
    this.entries = [...this.entries, entry];
    return () => {
      this.entries = this.entries.filter((other) => other !== entry);
    };
  };

  readonly announce = (...told: A): void => {
    for (const entry of this.entries) entry(...told);
  };
}
