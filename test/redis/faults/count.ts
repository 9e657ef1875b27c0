/** What is in flight of one limit: how far above it, and since when replicas may use all of it again. */

/** A state that comes and goes. What lasts no longer than `briefMs` does not count. */
class Spell {
  private sinceMs: number | undefined = undefined;
  private lastEndMs = 0;
  private readonly briefMs: number;

  constructor(brief: number) {
    this.briefMs = brief;
  }

  note(isOn: boolean, nowMs: number): void {
    if (isOn) {
      this.sinceMs ??= nowMs;
      return;
    }
    if (this.sinceMs !== undefined && nowMs - this.sinceMs > this.briefMs) this.lastEndMs = nowMs;
    this.sinceMs = undefined;
  }

  /** When it was there for the last time. */
  endedAtMs(nowMs: number): number {
    return this.sinceMs !== undefined && nowMs - this.sinceMs > this.briefMs ? nowMs : this.lastEndMs;
  }
}

export class Count {
  readonly limit: number;
  inFlight = 0;
  /** What replicas may have in flight, by their own account. */
  usable = 0;
  /** The most above the limit at any moment. */
  mostOver = 0;
  taken = 0;
  lastTakenAtMs = 0;
  /** The last requests of all replicas, by which they may exceed their parts. */
  private readonly slack: number;
  private readonly lacking: Spell;
  private readonly exceeding = new Spell(0);

  constructor(limit: number, slack: number, briefMs: number) {
    this.limit = limit;
    this.slack = slack;
    this.lacking = new Spell(briefMs);
    this.mayUse(0);
  }

  took(amount: number): void {
    this.taken++;
    this.lastTakenAtMs = performance.now();
    this.change(amount);
    this.mostOver = Math.max(this.mostOver, this.inFlight - this.limit);
  }

  gave(amount: number): void {
    this.change(-amount);
  }

  mayUse(step: number): void {
    this.usable += step;
    // What last requests exceed one part by is lacking in another.
    this.lacking.note(this.slack === 0 && this.usable < this.limit, performance.now());
  }

  /** From then on all seats could be used, and none more were. */
  get wholeSinceMs(): number {
    const nowMs = performance.now();
    return Math.max(this.lacking.endedAtMs(nowMs), this.exceeding.endedAtMs(nowMs));
  }

  private change(step: number): void {
    this.inFlight += step;
    this.exceeding.note(this.inFlight > this.limit + this.slack, performance.now());
  }
}

/** Amounts that were spent at instants, and how far they exceed a burst and a rate over any span of time. */
export class Spending {
  private readonly spent: { readonly atMs: number; readonly amount: number }[] = [];

  add(atMs: number, amount: number): void {
    this.spent.push({ atMs, amount });
  }

  get times(): number {
    return this.spent.length;
  }

  mostOver({ perMinute, burst }: { readonly perMinute: number; readonly burst: number }): number {
    let level = 0;
    let lastMs = 0;
    let most = 0;
    for (const { atMs, amount } of this.spent.sort((a, b) => a.atMs - b.atMs)) {
      level = Math.max(0, level - ((atMs - lastMs) * perMinute) / 60_000) + amount;
      lastMs = atMs;
      most = Math.max(most, level - burst);
    }
    return Math.ceil(most);
  }
}
