/** The body of one request as its client sends it. A client that stops, or sends next to nothing, is not waited for. */
import type { IncomingMessage } from 'node:http';
import { GatheredBytes } from '../../base/stream/gathered-bytes.js';
import type { StopWatching, UploadState, UploadWatch } from '../../base/stream/upload-watch.js';
import { ApiError, uploadEnds } from '../shared/api-error.js';
import type { ScanBudget, Waiting } from './scan-budget.js';

export interface PieceReceiver {
  /** Called for each piece when it arrives; may throw. */
  arrived(chunk: Buffer): void;
  /** Called for all that has arrived, in order, perhaps in a later turn; may throw. */
  readonly look: ((bytes: Buffer) => void) | undefined;
  done(error?: unknown): void;
}

/** While an upload waits for its turn, shorter pieces go on coming: in Node each would take as much memory as this. */
const shortPiece = 1024;
/** Up to here. */
const mostUnseen = 65_536;

/**
 * Hands over each piece as it arrives, without a promise for the whole and a timer for each piece. Pieces are looked at
 * when `scans` allows it. `done` is called once: at the end, or with an error: ApiError 408 when the client does not
 * send, what the stream fails with when the client leaves, or what the receiver throws. The rest is not read then.
 */
export class Upload implements Waiting {
  private readonly req: IncomingMessage;
  private readonly scans: ScanBudget;
  private readonly receiver: PieceReceiver;
  private readonly stopWatching: StopWatching;
  private receivedBytes = 0;
  private isOver = false;
  /** What waits to be looked at; undefined while nothing does. */
  private unseen: GatheredBytes | undefined = undefined;
  private isPaused = false;

  constructor(req: IncomingMessage, watch: UploadWatch, receiver: PieceReceiver, scans: ScanBudget) {
    this.req = req;
    this.receiver = receiver;
    this.scans = scans;
    this.stopWatching = watch.add(
      () => this.state(),
      () => this.fail(new ApiError(408, 'upload_timeout', 'The request was not received in time.', uploadEnds)),
    );
    if (req.readableEnded) this.ended();
    else if (req.destroyed) this.left();
    else req.on('data', this.received).on('end', this.ended).on('error', this.fail).on('close', this.left);
  }

  get bytes(): number {
    return this.unseen?.length ?? 0;
  }

  go(): void {
    if (this.isOver) return;
    const { req, unseen } = this;
    this.unseen = undefined;
    try {
      for (const { buffer, byteOffset, length } of unseen?.parts() ?? [])
        this.receiver.look?.(Buffer.from(buffer, byteOffset, length));
    } catch (error) {
      this.fail(error);
      return;
    }
    if (req.readableEnded) this.ended();
    else if (this.isPaused) {
      this.isPaused = false;
      req.resume();
    }
  }

  private readonly received = (chunk: Buffer): void => {
    this.receivedBytes += chunk.length;
    const { arrived, look } = this.receiver;
    try {
      arrived(chunk);
      if (look === undefined) return;
      if (this.unseen === undefined && this.scans.spend(chunk.length)) look(chunk);
      else this.putOff(chunk);
    } catch (error) {
      this.fail(error);
    }
  };

  // Node tells of the end, and then of the close, while the last pieces wait.
  private readonly ended = (): void => {
    if (this.unseen !== undefined) return;
    this.settle();
    this.receiver.done();
  };

  private readonly left = (): void => {
    if (this.unseen !== undefined && this.req.readableEnded) return;
    this.fail(this.req.errored ?? new Error('The client left'));
  };

  private readonly fail = (error: unknown): void => {
    this.settle();
    this.req.pause();
    this.receiver.done(error);
  };

  private putOff(chunk: Buffer): void {
    if (this.unseen === undefined) {
      this.unseen = new GatheredBytes();
      this.scans.wait(this);
    }
    this.unseen.push(chunk);
    if (this.isPaused || (chunk.length < shortPiece && this.unseen.length < mostUnseen)) return;
    this.isPaused = true;
    this.req.pause();
  }

  private state(): UploadState {
    if (this.req.readableEnded) return { type: 'over' };
    return this.isPaused ? { type: 'unread' } : { type: 'coming', bytes: this.receivedBytes };
  }

  private settle(): void {
    const { req } = this;
    this.isOver = true;
    this.stopWatching();
    req.off('data', this.received).off('end', this.ended).off('error', this.fail).off('close', this.left);
  }
}
