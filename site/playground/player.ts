/**
 * The time of the playground: which instant of which run is shown. Moving a slider makes a new run, which takes over
 * when it has caught up.
 */
import { Run } from './run.ts';
import { lengthS, type Settings } from './settings.ts';

/**
 * Simulation in one frame at most, ms of real time: while it plays the rest of a frame is for the picture and the page.
 */
const playingBudgetMs = 9;
const standingBudgetMs = 30;

export const speeds = [1, 3, 10] as const;

export class Player {
  run: Run;
  targetMs = 0;
  isPlaying = false;
  speed: (typeof speeds)[number] = 3;
  private next: Run | undefined;

  constructor(settings: Settings) {
    this.run = new Run(settings);
  }

  /** The same instant under other settings. */
  change(settings: Settings): void {
    this.next = new Run(settings);
  }

  seek(toMs: number): void {
    this.targetMs = Math.min(lengthS * 1000, Math.max(0, toMs));
    const { settings, reachedMs } = this.next ?? this.run;
    if (reachedMs > this.targetMs) this.next = new Run(settings);
  }

  play(): void {
    if (this.isAtEnd) this.seek(0);
    this.isPlaying = true;
  }

  get isAtEnd(): boolean {
    return this.targetMs >= lengthS * 1000;
  }

  /** False when the run has some way to go yet. The time stands still while it catches up. */
  async frame(elapsedMs: number): Promise<boolean> {
    if (this.isPlaying && this.next === undefined)
      this.targetMs = Math.min(lengthS * 1000, this.targetMs + elapsedMs * this.speed);
    const coming = this.next ?? this.run;
    const isThere = await coming.advance(
      this.targetMs,
      this.isPlaying && this.next === undefined ? playingBudgetMs : standingBudgetMs,
    );
    if (isThere && this.next !== undefined) {
      this.run = this.next;
      this.next = undefined;
    }
    if (!isThere && this.isPlaying && this.next === undefined) this.targetMs = this.run.reachedMs;
    if (this.isAtEnd && isThere) this.isPlaying = false;
    return isThere;
  }
}
