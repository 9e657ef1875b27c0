/**
 * Receives bodies, within three bounds: a limit for each body; a limit for all bodies that are being received, of which
 * one sender gets only a share; and a least rate at which clients must send.
 *
 * Invariant: only bytes that have arrived count. A client that announces much and sends nothing holds nothing, and not
 * for long. One that sends crumbs has its share used up by their number, because each of them costs time.
 */
import type { IncomingMessage } from 'node:http';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import { realClock } from '../../base/clock.js';
import { GatheredBytes } from '../../base/stream/gathered-bytes.js';
import { type UploadLimits, UploadWatch } from '../../base/stream/upload-watch.js';
import { ApiError, uploadEnds } from '../shared/api-error.js';
import type { ContentEncoding } from './media-types.js';
import { ScanBudget } from './scan-budget.js';
import { Upload } from './upload.js';

export interface BodyLimits {
  readonly maxRequestBytes: number;
  readonly maxReadingBytes: number;
}

export interface Receiver {
  readonly sender: string;
  /** The limit; that of the configuration when undefined. */
  readonly mostBytes: number | undefined;
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
  /** Bytes of all bodies that are not whole yet. Whole bodies count against the limits of flow control. */
  private readingBytes = 0;
  private readonly bytesBySender = new Map<string, number>();
  private readonly scans = new ScanBudget();
  private limits: BodyLimits;
  private uploads: UploadWatch;

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

  /**
   * The whole body, of at most `mostBytes`.
   * @throws (rejects) what `receive` fails with
   */
  read(req: IncomingMessage, sender: string, mostBytes?: number): Promise<Buffer> {
    return new Promise((resolve, reject) =>
      this.receive(req, { sender, mostBytes, look: undefined, done: resolve, fail: reject }),
    );
  }

  /**
   * The whole body, without a promise: most bodies are there as soon as they are asked for. Either `done` or `fail` is
   * called, once. It fails with ApiError 408 when the client stops sending, 413 when the body is too large, and 503
   * when all bodies together are. It also fails with an exception of `look`, and with the error of the stream when the
   * client leaves.
   */
  receive(req: IncomingMessage, { sender, mostBytes, look, done, fail }: Receiver): void {
    const { maxRequestBytes, maxReadingBytes } = this.limits;
    const most = mostBytes ?? maxRequestBytes;
    const share = this.shareFor(most);
    const gathered = new GatheredBytes();
    let pieces = 0;
    let booked = 0;
    const arrived = (chunk: Buffer): void => {
      gathered.push(chunk);
      pieces += 1;
      const before = booked;
      booked = Math.max(gathered.length, (pieces - freePieces) * leastPieceBytes);
      const ofSender = this.book(sender, booked - before);
      if (gathered.length > most) throw tooLarge(most);
      if (ofSender > share || this.readingBytes > maxReadingBytes) throw busy();
    };
    const finish = (error: unknown): void => {
      this.book(sender, -booked);
      let body: Buffer;
      try {
        if (error !== undefined) throw error;
        body = whole(gathered);
      } catch (reason) {
        fail(reason);
        return;
      }
      done(body);
    };
    new Upload(req, this.uploads, { arrived, look, done: finish }, this.scans);
  }

  /**
   * A body as it was before it was packed. The unpacked bytes count while they come, and unpacking stops at the limit,
   * because a small body can unpack to a thousand times its size.
   * @throws ApiError 400 for what is not packed so, 413, 503
   */
  async unpack(
    packed: Buffer,
    encoding: ContentEncoding,
    sender: string,
    look: (chunk: Buffer) => void,
  ): Promise<Buffer> {
    const { maxRequestBytes, maxReadingBytes } = this.limits;
    const share = this.shareFor(maxRequestBytes);
    const gathered = new GatheredBytes();
    // The packed and the unpacked body are both held until the end.
    const held = packed.length;
    this.book(sender, held);
    const stream = unpackers[encoding]();
    stream.end(packed);
    try {
      for await (const chunk of stream as AsyncIterable<Buffer>) {
        gathered.push(chunk);
        const ofSender = this.book(sender, chunk.length);
        if (gathered.length > maxRequestBytes) throw tooLarge(maxRequestBytes);
        if (ofSender - held > share || this.readingBytes - held > maxReadingBytes) throw busy();
        const bytes = chunk.length;
        if (!this.scans.spend(bytes)) await new Promise<void>((go) => this.scans.wait({ bytes, go }));
        look(chunk);
      }
      return whole(gathered);
    } catch (error) {
      if (error instanceof ApiError) throw error;
      throw new ApiError(400, 'invalid_encoding', `The body is not packed by ${encoding}, or is cut short.`);
    } finally {
      stream.destroy();
      this.book(sender, -gathered.length - held);
    }
  }

  /** Bytes that one sender may have in work. A share has room for one body at least. */
  private shareFor(mostBytes: number): number {
    const { maxReadingBytes } = this.limits;
    return Math.max(maxReadingBytes / shares, Math.min(mostBytes, maxReadingBytes));
  }

  /** Returns what is being received from the sender. */
  private book(sender: string, bytes: number): number {
    const now = (this.bytesBySender.get(sender) ?? 0) + bytes;
    if (now === 0) this.bytesBySender.delete(sender);
    else this.bytesBySender.set(sender, now);
    this.readingBytes += bytes;
    return now;
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

function tooLarge(mostBytes: number): ApiError {
  return new ApiError(413, 'request_too_large', `The request is larger than ${mostBytes} bytes.`, uploadEnds);
}

function busy(): ApiError {
  const headers = { ...uploadEnds, 'retry-after': '1', 'retry-after-ms': '1000' };
  return new ApiError(503, 'gateway_busy', 'The gateway is reading too many requests at once.', headers);
}
