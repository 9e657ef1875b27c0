/**
 * Receives bodies within bounds: on each, on all together, of which a sender gets a share, and on slowness. Invariant:
 * only what has arrived counts. Crumbs count by number, because each costs time.
 */
import type { IncomingMessage } from 'node:http';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import { realClock } from '../../base/clock.js';
import { GatheredBytes } from '../../base/stream/gathered-bytes.js';
import { type StopWatching, type UploadLimits, type UploadState, UploadWatch } from '../../base/stream/upload-watch.js';
import { ApiError, uploadEnds } from '../shared/api-error.js';
import type { ContentEncoding } from './media-types.js';
import { ScanBudget, type Waiting } from './scan-budget.js';

export type BodyLimits = Readonly<Record<'maxRequestBytes' | 'maxReadingBytes', number>>;

export interface Receiver {
  readonly sender: string;
  /** Looks at the body as it arrives, part by part, and may throw. */
  readonly look: ((bytes: Buffer) => void) | undefined;
  done(body: Buffer): void;
  fail(error: unknown): void;
}

const unpackers = { gzip: createGunzip, deflate: createInflate, br: createBrotliDecompress };

/** One sender gets one part in this many of `maxReadingBytes`: so many have to work together to shut out others. */
const shares = 4;

/** Pieces count as that many bytes each on average, if they have fewer. The first ones are free, for small bodies. */
const leastPieceBytes = 1024;
const freePieces = 16;

export class BodyReader {
  readonly scans: ScanBudget = new ScanBudget();
  limits: BodyLimits;
  uploads: UploadWatch;
  /** Bytes of all bodies that are not whole yet. Whole bodies count against the limits of flow control. */
  private readingBytes = 0;
  private readonly bytesBySender = new Map<string, number>();

  constructor(limits: BodyLimits, upload: UploadLimits) {
    this.limits = limits;
    this.uploads = new UploadWatch(upload, realClock);
  }

  /** Bodies that are coming keep the rate that they began with. */
  configure(limits: BodyLimits, upload: UploadLimits): void {
    this.limits = limits;
    this.uploads = new UploadWatch(upload, realClock);
  }

  /** @throws ApiError 413 when the head of the request promises too much. */
  checkDeclared({ headers }: IncomingMessage, mostBytes: number = this.limits.maxRequestBytes): void {
    if (Number(headers['content-length'] ?? 0) > mostBytes) throw tooLarge(mostBytes);
  }

  /** The whole body, of at most `mostBytes`. @throws (rejects) what `receive` fails with */
  async read(req: IncomingMessage, sender: string, mostBytes: number): Promise<Buffer> {
    this.checkDeclared(req, mostBytes);
    const body = await new Promise<Buffer>((done, fail) => this.receive(req, { sender, look: undefined, done, fail }));
    if (body.length > mostBytes) throw tooLarge(mostBytes);
    return body;
  }

  /**
   * The whole body, without a promise: most are there at once. `done` or `fail` is called, once: ApiError 408 when the
   * client stops, 413 too large, 503 when all together are, what `look` throws, and errors of the stream.
   */
  receive(req: IncomingMessage, receiver: Receiver): void {
    new Upload(req, this, receiver);
  }

  /**
   * Unpacks a body, counting as it comes and up to the limit, because a small one can unpack to a thousand times its
   * size. @throws ApiError 400 for what is not packed so, 413, 503
   */
  async unpack(packed: Buffer, by: ContentEncoding, sender: string, look: (chunk: Buffer) => void): Promise<Buffer> {
    const { limits } = this;
    const gathered = new GatheredBytes();
    // The packed and the unpacked body are both held until the end.
    const held = packed.length;
    this.book(sender, held);
    const stream = unpackers[by]();
    stream.end(packed);
    try {
      for await (const chunk of stream as AsyncIterable<Buffer>) {
        gathered.push(chunk);
        this.grow(sender, chunk.length, gathered.length, limits, held);
        const bytes = chunk.length;
        if (!this.scans.spend(bytes)) await new Promise<void>((go) => this.scans.wait({ bytes, go }));
        look(chunk);
      }
      return whole(gathered);
    } catch (error) {
      if (error instanceof ApiError) throw error;
      throw new ApiError(400, 'invalid_encoding', `The body is not packed by ${by}, or is cut short.`);
    } finally {
      stream.destroy();
      this.book(sender, -gathered.length - held);
    }
  }

  /** Books more of a body, which now has so many bytes; `held`: of another form of it. @throws ApiError 413, 503 */
  grow(
    sender: string,
    bytes: number,
    bodyBytes: number,
    { maxRequestBytes, maxReadingBytes }: BodyLimits,
    held = 0,
  ): void {
    const ofSender = this.book(sender, bytes);
    if (bodyBytes > maxRequestBytes) throw tooLarge(maxRequestBytes);
    // A share has room for one body at least.
    const share = Math.max(maxReadingBytes / shares, Math.min(maxRequestBytes, maxReadingBytes));
    if (ofSender - held > share || this.readingBytes - held > maxReadingBytes) throw busy();
  }

  /** Returns what is being received from the sender. */
  book(sender: string, bytes: number): number {
    const now = (this.bytesBySender.get(sender) ?? 0) + bytes;
    if (now === 0) this.bytesBySender.delete(sender);
    else this.bytesBySender.set(sender, now);
    this.readingBytes += bytes;
    return now;
  }
}

/** While an upload waits for its turn, shorter pieces go on coming: in Node each would take as much memory as this. */
const shortPiece = 1024;
/** Up to here. */
const mostUnseen = 65_536;

/** One body as its client sends it, without a promise for the whole. It settles once, and reads no further then. */
class Upload implements Waiting {
  private readonly req: IncomingMessage;
  private readonly reader: BodyReader;
  private readonly receiver: Receiver;
  private readonly limits: BodyLimits;
  private readonly stopWatching: StopWatching;
  private readonly gathered = new GatheredBytes();
  private pieces = 0;
  private booked = 0;
  private isOver = false;
  /** What waits to be looked at; undefined while nothing does. */
  private unseen: GatheredBytes | undefined = undefined;
  private isPaused = false;

  constructor(req: IncomingMessage, reader: BodyReader, receiver: Receiver) {
    this.req = req;
    this.reader = reader;
    this.receiver = receiver;
    this.limits = reader.limits;
    this.stopWatching = reader.uploads.add(
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
      return void this.fail(error);
    }
    if (req.readableEnded) this.ended();
    else if (this.isPaused) {
      this.isPaused = false;
      req.resume();
    }
  }

  private readonly received = (chunk: Buffer): void => {
    const { look } = this.receiver;
    try {
      this.take(chunk);
      if (look === undefined) return;
      if (this.unseen === undefined && this.reader.scans.spend(chunk.length)) look(chunk);
      else this.putOff(chunk);
    } catch (error) {
      this.fail(error);
    }
  };

  private take(chunk: Buffer): void {
    const { reader, receiver, limits, gathered } = this;
    gathered.push(chunk);
    this.pieces += 1;
    const before = this.booked;
    this.booked = Math.max(gathered.length, (this.pieces - freePieces) * leastPieceBytes);
    reader.grow(receiver.sender, this.booked - before, gathered.length, limits);
  }

  // Node tells of the end, and then of the close, while the last pieces wait.
  private readonly ended = (): void => {
    if (this.unseen !== undefined) return;
    this.settle();
    let body: Buffer;
    try {
      body = whole(this.gathered);
    } catch (error) {
      return void this.receiver.fail(error);
    }
    this.receiver.done(body);
  };

  private readonly left = (): void => {
    if (this.unseen !== undefined && this.req.readableEnded) return;
    this.fail(this.req.errored ?? new Error('The client left'));
  };

  private readonly fail = (error: unknown): void => {
    this.settle();
    this.req.pause();
    this.receiver.fail(error);
  };

  private putOff(chunk: Buffer): void {
    if (this.unseen === undefined) {
      this.unseen = new GatheredBytes();
      this.reader.scans.wait(this);
    }
    this.unseen.push(chunk);
    if (this.isPaused || (chunk.length < shortPiece && this.unseen.length < mostUnseen)) return;
    this.isPaused = true;
    this.req.pause();
  }

  private state(): UploadState {
    if (this.req.readableEnded) return { type: 'over' };
    return this.isPaused ? { type: 'unread' } : { type: 'coming', bytes: this.gathered.length };
  }

  private settle(): void {
    const { req } = this;
    this.isOver = true;
    this.stopWatching();
    this.reader.book(this.receiver.sender, -this.booked);
    req.off('data', this.received).off('end', this.ended).off('error', this.fail).off('close', this.left);
  }
}

/** A copy in memory of its own, because small buffers of Node are slices, which hold more memory than they show. */
function whole(gathered: GatheredBytes): Buffer {
  const body = Buffer.allocUnsafeSlow(gathered.length);
  let at = 0;
  for (const part of gathered.parts()) {
    body.set(part, at);
    at += part.length;
  }
  return body;
}

const tooLarge = (mostBytes: number): ApiError =>
  new ApiError(413, 'request_too_large', `The request is larger than ${mostBytes} bytes.`, uploadEnds);

function busy(): ApiError {
  const headers = { ...uploadEnds, 'retry-after': '1', 'retry-after-ms': '1000' };
  return new ApiError(503, 'gateway_busy', 'The gateway is reading too many requests at once.', headers);
}
