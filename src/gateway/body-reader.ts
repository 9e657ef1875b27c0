/** Reads JSON bodies whole, up to a limit for each and for all that are being read. */
import type { IncomingMessage } from 'node:http';
import { ApiError, uploadEnds } from './api-error.js';

export interface BodyLimits {
  readonly maxRequestBytes: number;
  readonly maxReadingBytes: number;
}

export class BodyReader {
  /** Of all bodies that are not whole yet. What is whole counts against the limits of flow control. */
  private readingBytes = 0;
  private limits: BodyLimits;

  constructor(limits: BodyLimits) {
    this.limits = limits;
  }

  configure(limits: BodyLimits): void {
    this.limits = limits;
  }

  /** @throws ApiError 413 when the head of the request promises too much. */
  checkDeclared({ headers }: IncomingMessage): void {
    if (Number(headers['content-length'] ?? 0) > this.limits.maxRequestBytes) throw this.tooLarge();
  }

  /**
   * The whole body.
   * @throws ApiError 413 when it is too large, 503 when all together are; what the stream throws when the client leaves
   */
  async read(req: IncomingMessage): Promise<Buffer> {
    const chunks: Buffer[] = [];
    let bytes = 0;
    try {
      for await (const chunk of req as AsyncIterable<Buffer>) {
        bytes += chunk.length;
        this.readingBytes += chunk.length;
        if (bytes > this.limits.maxRequestBytes) throw this.tooLarge();
        if (this.readingBytes > this.limits.maxReadingBytes) {
          throw new ApiError(503, 'gateway_busy', 'The gateway is reading too many requests at once.', {
            ...uploadEnds,
            'retry-after': '1',
          });
        }
        chunks.push(chunk);
      }
      return Buffer.concat(chunks, bytes);
    } finally {
      this.readingBytes -= bytes;
    }
  }

  /** The body as it comes, until it is too large. */
  async *pass(req: IncomingMessage): AsyncGenerator<Buffer> {
    let bytes = 0;
    for await (const chunk of req as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > this.limits.maxRequestBytes) throw this.tooLarge();
      yield chunk;
    }
  }

  private tooLarge(): ApiError {
    const message = `The request is larger than ${this.limits.maxRequestBytes} bytes.`;
    return new ApiError(413, 'request_too_large', message, uploadEnds);
  }
}
