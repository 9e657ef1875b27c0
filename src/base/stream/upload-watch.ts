/**
 * Ends requests whose client does not send the body, while they hold a seat, memory or a connection; one timer for all.
 * Only time in which the client was to send counts: not while data lies unread, nor once the response began.
 */
import type { Clock } from '../clock.js';
import { type Linked, LinkedList } from '../queues/linked-list.js';

/** How far the body of a request has come. */
export type UploadState =
  /** It has arrived, or the host answers, or nobody can tell. */
  | { readonly type: 'over' }
  /** Data is there that the host has not taken. */
  | { readonly type: 'unread' }
  /** The bytes that came so far, counted from any start. */
  | { readonly type: 'coming'; readonly bytes: number };

export interface UploadLimits {
  /** The longest silence, ms; also how long an upload may be slower than the rate at its beginning. */
  readonly idleMs: number;
  readonly minBytesPerSecond: number;
}

class Upload implements Linked<Upload> {
  previous: Upload | undefined = undefined;
  next: Upload | undefined = undefined;
  isWatched = true;
  /** Bytes that had come at the last look. */
  bytes: number = NaN;
  silentMs = 0;
  /** Time in which the client was to send, and what it sent in it. */
  waitedMs = 0;
  firstBytes: number | undefined = undefined;
  readonly look: () => UploadState;
  readonly end: () => void;

  constructor(look: () => UploadState, end: () => void) {
    this.look = look;
    this.end = end;
  }
}

export type StopWatching = () => void;

const longestPeriodMs = 1000;

export class UploadWatch {
  private readonly uploads = new LinkedList<Upload>();
  private readonly limits: UploadLimits;
  private readonly clock: Clock;
  private readonly periodMs: number;
  private timer: unknown = undefined;
  private lookedAtMs = 0;

  constructor(limits: UploadLimits, clock: Clock) {
    this.limits = limits;
    this.clock = clock;
    this.periodMs = Math.min(limits.idleMs / 4, longestPeriodMs);
  }

  /** `end` is called at most once, when the client is too slow. */
  add(look: () => UploadState, end: () => void): StopWatching {
    const upload = new Upload(look, end);
    this.uploads.push(upload);
    if (this.timer === undefined) this.await();
    return () => this.remove(upload);
  }

  private remove(upload: Upload): void {
    if (!upload.isWatched) return;
    this.take(upload);
    if (this.uploads.size > 0) return;
    this.clock.clearTimeout(this.timer);
    this.timer = undefined;
  }

  private await(): void {
    this.lookedAtMs = this.clock.now();
    this.timer = this.clock.setTimeout(() => this.look(), this.periodMs);
  }

  private look(): void {
    // Clients are not to blame for a busy event loop.
    const spentMs = Math.min(this.clock.now() - this.lookedAtMs, 2 * this.periodMs);
    this.timer = undefined;
    // Ending one may end others.
    for (const upload of [...this.uploads]) {
      if (!upload.isWatched) continue;
      const state = upload.look();
      if (state.type === 'over') this.take(upload);
      else if (state.type === 'unread') upload.silentMs = 0;
      else if (this.isTooSlow(upload, state.bytes, spentMs)) {
        this.take(upload);
        upload.end();
      }
    }
    if (this.uploads.size > 0 && this.timer === undefined) this.await();
  }

  private take(upload: Upload): void {
    upload.isWatched = false;
    this.uploads.remove(upload);
  }

  private isTooSlow(upload: Upload, bytes: number, spentMs: number): boolean {
    const { idleMs, minBytesPerSecond } = this.limits;
    upload.silentMs = bytes === upload.bytes ? upload.silentMs + spentMs : 0;
    upload.bytes = bytes;
    if (upload.silentMs >= idleMs) return true;
    upload.firstBytes ??= bytes;
    upload.waitedMs += spentMs;
    return upload.waitedMs > idleMs && bytes - upload.firstBytes < (upload.waitedMs / 1000) * minBytesPerSecond;
  }
}
