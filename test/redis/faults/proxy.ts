/**
 * A proxy in front of a store that cuts connections, and drops, delays, repeats and swaps the answers to our scripts.
 */

import type { AddressInfo } from 'node:net';
import { createServer, connect as dial, type Server, type Socket } from 'node:net';
import { replyWidth } from '../../../src/redis/leases/lease-reply.js';

export interface ProxyFaults {
  readonly drop: number;
  readonly repeat: number;
  readonly swap: number;
  /** Answers are late by up to so much, ms. */
  readonly delayMs: number;
}

const none: ProxyFaults = { drop: 0, repeat: 0, swap: 0, delayMs: 0 };

export class FaultyProxy {
  faults: ProxyFaults = none;
  /** Where new connections lead. */
  target: number;
  /** While true nothing passes, and connections are refused. */
  isCut = false;
  private readonly server: Server;
  private readonly random: () => number;
  private readonly sockets = new Set<Socket>();

  constructor(target: number, random: () => number) {
    this.target = target;
    this.random = random;
    this.server = createServer((near) => this.join(near));
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  listen(): Promise<void> {
    return new Promise((resolve) => this.server.listen(0, '127.0.0.1', resolve));
  }

  /** Breaks off what is connected. */
  sever(): void {
    for (const socket of this.sockets) socket.destroy();
  }

  close(): void {
    this.server.close();
    this.sever();
  }

  private join(near: Socket): void {
    if (this.isCut) {
      near.destroy();
      return;
    }
    const far = dial(this.target, '127.0.0.1');
    const end = (): void => {
      near.destroy();
      far.destroy();
      this.sockets.delete(near);
      this.sockets.delete(far);
    };
    for (const socket of [near, far]) {
      this.sockets.add(socket);
      socket.setNoDelay(true);
      socket.on('error', end).on('close', end);
    }
    near.on('data', (data) => {
      if (!this.isCut) far.write(data);
    });
    let rest = Buffer.alloc(0);
    let kept: Buffer | undefined;
    let busyUntilMs = 0;
    const pass = (frame: Buffer): void => {
      // Answers of one connection stay in order, but for those that are swapped.
      busyUntilMs = Math.max(busyUntilMs, performance.now() + this.faults.delayMs * this.random());
      setTimeout(() => {
        if (!near.destroyed && !this.isCut) near.write(frame);
      }, busyUntilMs - performance.now());
    };
    far.on('data', (data) => {
      rest = Buffer.concat([rest, data]);
      for (let length = frameLength(rest, 0); length > 0; length = frameLength(rest, 0)) {
        const frame = rest.subarray(0, length);
        rest = rest.subarray(length);
        const { drop, repeat, swap } = this.faults;
        const isOurs = isLeaseReply(frame);
        if (isOurs && this.random() < drop) continue;
        if (isOurs && kept === undefined && this.random() < swap) {
          kept = frame;
          continue;
        }
        pass(frame);
        if (isOurs && this.random() < repeat) pass(frame);
        if (kept !== undefined) pass(kept);
        kept = undefined;
      }
    });
  }
}

/** An array with so many texts for each key: of one pool, or of several endpoints. */
function isLeaseReply(frame: Buffer): boolean {
  const [, count = 'none'] = /^\*(\d+)\r\n/.exec(frame.subarray(0, 10).toString()) ?? [];
  return Number(count) > 0 && Number(count) % replyWidth === 0;
}

/** Bytes of the reply that begins at `at`; 0 when it is not all there. */
function frameLength(bytes: Buffer, at: number): number {
  const end = bytes.indexOf('\r\n', at);
  if (end < 0) return 0;
  const type = String.fromCharCode(bytes[at] ?? 0);
  const count = Number(bytes.subarray(at + 1, end).toString());
  let next = end + 2;
  if (type === '$' || type === '=' || type === '!') {
    if (count >= 0) next += count + 2;
  } else if (type === '*' || type === '~' || type === '>' || type === '%') {
    for (let i = 0; i < count * (type === '%' ? 2 : 1); i++) {
      const length = frameLength(bytes, next);
      if (length === 0) return 0;
      next += length;
    }
  }
  return next <= bytes.length ? next - at : 0;
}
