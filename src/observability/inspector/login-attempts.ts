/**
 * How often a password may be tried: from each address, and in all, because one client may have many addresses.
 *
 * Each wrong one moves an instant forward, by the time after which another try is free. While it lies further ahead
 * than `burst` of them, nothing is tried. Invariant: at most `mostAddresses` are kept.
 */

interface Pace {
  /** Wrong passwords in a row. */
  readonly burst: number;
  /** Then one in that time, ms. */
  readonly everyMs: number;
}

const ofOne: Pace = { burst: 10, everyMs: 6_000 };
const ofAll: Pace = { burst: 100, everyMs: 200 };
const mostAddresses = 1_000;

export class LoginAttempts {
  /** The instants, ms, by address; the longest untouched first. */
  private readonly byAddress = new Map<string, number>();
  private allAtMs = Number.NEGATIVE_INFINITY;

  /** Takes a try, and returns 0; or, where none may be taken, how long to wait, ms. */
  take(address: string, nowMs: number): number {
    const oneAtMs = Math.max(this.byAddress.get(address) ?? nowMs, nowMs) + ofOne.everyMs;
    const allAtMs = Math.max(this.allAtMs, nowMs) + ofAll.everyMs;
    const waitMs = Math.max(beyond(ofOne, oneAtMs, nowMs), beyond(ofAll, allAtMs, nowMs));
    if (waitMs > 0) return waitMs;
    this.keep(address, oneAtMs);
    this.allAtMs = allAtMs;
    return 0;
  }

  /** The password was right: the try was none. */
  giveBack(address: string, nowMs: number): void {
    const atMs = (this.byAddress.get(address) ?? nowMs) - ofOne.everyMs;
    if (atMs > nowMs) this.keep(address, atMs);
    else this.byAddress.delete(address);
    this.allAtMs -= ofAll.everyMs;
  }

  private keep(address: string, atMs: number): void {
    this.byAddress.delete(address);
    this.byAddress.set(address, atMs);
    if (this.byAddress.size <= mostAddresses) return;
    for (const longestUntouched of this.byAddress.keys()) {
      this.byAddress.delete(longestUntouched);
      return;
    }
  }
}

function beyond({ burst, everyMs }: Pace, atMs: number, nowMs: number): number {
  return atMs - nowMs - burst * everyMs;
}
