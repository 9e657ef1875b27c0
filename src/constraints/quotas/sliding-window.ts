/**
 * A limit on what was taken in the last `per`, wherever that begins.
 *
 *     entries:  │ 3 at 10 s │ 5 at 12 s │ 1 at 40 s │        each is free again `per` after it was taken
 *
 * Invariant: what is taken with room in any span of `per` is at most the limit. A taking beyond the limit is cut into
 * entries `per` apart, so that its debt is paid. There are little more than `mostEntries` entries: takings that lie
 * close together count as one at the end of them.
 */
import { type QuotaWindow, rounding, type Taking, WholeWindow } from '../../base/quota-window.js';

/** More than this many takings in one window are put together, so that a step costs no more than this. */
const mostEntries = 512;

interface Entry {
  amount: number;
  atMs: number;
  readonly firstAtMs: number;
}

interface SlidingTaking extends Taking {
  readonly entries: readonly Entry[];
}

export class SlidingWindow extends WholeWindow implements QuotaWindow {
  readonly kind = 'sliding';
  private taken = 0;
  /** Oldest first. */
  private entries: Entry[] = [];

  used(nowMs: number): number {
    this.expire(nowMs);
    return this.taken;
  }

  roomAtMs(amount: number, nowMs: number, returning = 0): number {
    const slack = this.limit * rounding;
    let over = this.used(nowMs) - returning + Math.min(amount, this.limit) - this.limit;
    let roomAtMs = nowMs;
    for (const entry of this.entries) {
      if (over <= slack) break;
      over -= entry.amount;
      roomAtMs = entry.atMs + this.perMs;
    }
    return roomAtMs;
  }

  take(amount: number, nowMs: number): SlidingTaking {
    this.expire(nowMs);
    // A debt of more windows is never paid: it counts as one of that many.
    const counted = Math.min(amount, mostEntries * this.limit);
    this.taken += counted;
    const entries: Entry[] = [];
    for (let left = counted, atMs = nowMs; left > 0; left -= this.limit, atMs += this.perMs)
      entries.push(this.add(Math.min(left, this.limit), atMs));
    return { amount: counted, entries };
  }

  settle(taking: Taking, amount: number, nowMs: number): void {
    const own = taking as SlidingTaking;
    const excess = own.amount - amount;
    this.expire(nowMs);
    if (excess < 0) {
      own.amount += this.take(-excess, nowMs).amount;
      return;
    }
    own.amount = amount;
    let left = excess;
    for (let i = own.entries.length - 1; i >= 0 && left > 0; i--) {
      const entry = own.entries[i] as Entry;
      if (entry.atMs + this.perMs <= nowMs) continue;
      const back = Math.min(entry.amount, left);
      entry.amount -= back;
      this.taken -= back;
      left -= back;
    }
  }

  freeAtMs(nowMs: number): number {
    this.expire(nowMs);
    const last = this.entries[this.entries.length - 1];
    return last === undefined ? nowMs : last.atMs + this.perMs;
  }

  private add(amount: number, atMs: number): Entry {
    let at = this.entries.length;
    // No entry comes after the entries of a debt; some may come before them.
    while (at > 0 && (this.entries[at - 1] as Entry).atMs > atMs) at--;
    const before = this.entries[at - 1];
    const isFull = this.entries.length >= mostEntries;
    if (before !== undefined && isFull && atMs - before.firstAtMs < this.perMs / mostEntries) {
      before.amount += amount;
      before.atMs = atMs;
      return before;
    }
    const entry: Entry = { amount, atMs, firstAtMs: atMs };
    this.entries.splice(at, 0, entry);
    return entry;
  }

  private expire(nowMs: number): void {
    let free = 0;
    while (free < this.entries.length && (this.entries[free] as Entry).atMs + this.perMs <= nowMs) {
      this.taken -= (this.entries[free] as Entry).amount;
      free++;
    }
    if (free > 0) this.entries.splice(0, free);
    if (this.entries.length === 0) this.taken = 0;
  }
}
