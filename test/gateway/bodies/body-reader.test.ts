import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { PassThrough } from 'node:stream';
import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { BodyReader } from '../../../src/gateway/bodies/body-reader.js';

const mebi = 2 ** 20;
const upload = { idleMs: 10_000, minBytesPerSecond: 4_096 };
const piece = 65_536;

/** A body that the test sends. */
function request(): PassThrough & IncomingMessage {
  return new PassThrough() as unknown as PassThrough & IncomingMessage;
}

function startReading(
  reader: BodyReader,
  req: IncomingMessage,
  look: (chunk: Buffer) => void,
  sender = 'a',
): Promise<Buffer> {
  return new Promise((done, fail) => reader.receive(req, { sender, look, done, fail }));
}

/**
 * The most that `count` grows by between two looks, until `work` has ended. There is a look in each turn of the event
 * loop, so that parts of two may fall between.
 */
async function mostPerTurn(count: () => number, work: Promise<unknown>): Promise<number> {
  let most = 0;
  let before = 0;
  let isOver = false;
  const look = (): void => {
    most = Math.max(most, count() - before);
    before = count();
    if (!isOver) setImmediate(look);
  };
  setImmediate(look);
  await work;
  isOver = true;
  return Math.max(most, count() - before);
}

afterEach(() => void vi.useRealTimers());

describe('bodies that arrive together', () => {
  it('are looked at a few pieces in a turn of the event loop, and each of them whole and in order', async () => {
    const reader = new BodyReader({ maxRequestBytes: mebi, maxReadingBytes: 256 * mebi }, upload);
    let looked = 0;
    const sent = Array.from({ length: 100 }, (_, index) => Buffer.alloc(3 * piece + index, index));
    const bodies = sent.map(async (bytes) => {
      const req = request();
      const seen: Buffer[] = [];
      const body = startReading(reader, req, (chunk) => {
        looked += chunk.length;
        seen.push(chunk);
      });
      for (let at = 0; at < bytes.length; at += piece) req.write(bytes.subarray(at, at + piece));
      req.end();
      expect((await body).equals(bytes)).toBe(true);
      expect(Buffer.concat(seen).equals(bytes)).toBe(true);
    });
    expect(await mostPerTurn(() => looked, Promise.all(bodies))).toBeLessThanOrEqual(6 * piece);
    expect(looked).toBe(sent.reduce((sum, { length }) => sum + length, 0));
  });

  it('are looked at a few pieces in a turn when they are packed, too', async () => {
    const reader = new BodyReader({ maxRequestBytes: mebi, maxReadingBytes: 256 * mebi }, upload);
    let looked = 0;
    const packed = gzipSync(Buffer.alloc(4 * piece));
    const look = (chunk: Buffer): void => {
      looked += chunk.length;
      // Long enough for the threads to have the next pieces of all bodies ready.
      createHash('sha256').update(chunk).digest();
    };
    const bodies = Array.from({ length: 100 }, () => reader.unpack(packed, 'gzip', 'a', look));
    expect(await mostPerTurn(() => looked, Promise.all(bodies))).toBeLessThanOrEqual(6 * piece);
    expect((await Promise.all(bodies)).map(({ length }) => length)).toEqual(bodies.map(() => 4 * piece));
  });

  it('are no slower for having waited: that time is not the client’s', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    const reader = new BodyReader({ maxRequestBytes: mebi, maxReadingBytes: 256 * mebi }, upload);
    const requests = Array.from({ length: 9 }, request);
    const bodies = requests.map((req) => startReading(reader, req, () => {}));
    for (const [index, req] of requests.entries()) req[index === 0 ? 'end' : 'write'](Buffer.alloc(piece));
    requests[1]!.end();
    let ended = 0;
    for (const body of bodies) void body.then(() => (ended += 1));
    // The callbacks of this turn, and no other: most bodies wait for the next one.
    for (let tick = 0; tick < 100 && ended < 2; tick++) await new Promise<void>((resolve) => process.nextTick(resolve));
    vi.advanceTimersByTime(60_000);
    for (const req of requests.slice(2)) req.end(Buffer.alloc(1));
    const lengths = (await Promise.all(bodies)).map(({ length }) => length);
    expect(lengths).toEqual(bodies.map((_, index) => (index < 2 ? piece : piece + 1)));
  });

  it('are let go of when their client leaves before it is their turn', async () => {
    const reader = new BodyReader({ maxRequestBytes: mebi, maxReadingBytes: 80 * piece }, upload);
    const looked: number[] = [];
    const requests = Array.from({ length: 20 }, request);
    const bodies = requests.map((req, index) =>
      startReading(reader, req, () => looked.push(index)).catch(({ message }) => message as string),
    );
    for (const req of requests) req.write(Buffer.alloc(piece));
    await new Promise((resolve) => setImmediate(resolve));
    for (const req of requests.slice(10)) req.destroy();
    for (const req of requests.slice(0, 10)) req.end();
    const results = await Promise.all(bodies);
    expect(results.map((result) => result === 'The client left')).toEqual(requests.map((_, index) => index >= 10));
    expect(looked.filter((index) => index < 10)).toHaveLength(10);
    // Nothing stays booked: the whole budget can be had again.
    const again = request();
    const body = startReading(reader, again, () => {});
    again.end(Buffer.alloc(mebi));
    expect(await body).toHaveLength(mebi);
    expect(looked.filter((index) => index >= 10).length).toBeLessThan(10);
  });

  it('fail by what looks at them, also when that had to wait', async () => {
    const reader = new BodyReader({ maxRequestBytes: mebi, maxReadingBytes: 256 * mebi }, upload);
    const bodies = Array.from({ length: 9 }, () => {
      const req = request();
      req.end(Buffer.alloc(piece));
      return startReading(reader, req, () => {
        throw new Error('no JSON');
      }).catch(String);
    });
    expect(await Promise.all(bodies)).toEqual(bodies.map(() => 'Error: no JSON'));
  });
});

describe('a body for which there is no memory', () => {
  it('fails by itself, and those that wait for their turn go on', async () => {
    const reader = new BodyReader({ maxRequestBytes: mebi, maxReadingBytes: 256 * mebi }, upload);
    const allocate = vi.spyOn(Buffer, 'allocUnsafeSlow').mockImplementationOnce(() => {
      throw new RangeError('Array buffer allocation failed');
    });
    const bodies = Array.from({ length: 9 }, () => {
      const req = request();
      req.end(Buffer.alloc(piece));
      return startReading(reader, req, () => {}).then(String, String);
    });
    const results = await Promise.all(bodies);
    allocate.mockRestore();
    expect(results.filter((result) => result === 'RangeError: Array buffer allocation failed')).toHaveLength(1);
  });
});

describe('the share of a sender', () => {
  it('bounds what its bodies unpack to, and leaves the others theirs', async () => {
    const reader = new BodyReader({ maxRequestBytes: mebi, maxReadingBytes: 8 * mebi }, upload);
    const packed = gzipSync(Buffer.alloc(mebi));
    const unpack = (sender: string) =>
      reader.unpack(packed, 'gzip', sender, () => {}).then(String, ({ code }) => code as string);
    const greedy = Array.from({ length: 40 }, () => unpack('a'));
    const other = unpack('b');
    expect(await Promise.all(greedy)).toContain('gateway_busy');
    expect(await other).not.toBe('gateway_busy');
  });

  it('has room for one packed body even where it is as small as one', async () => {
    const reader = new BodyReader({ maxRequestBytes: mebi, maxReadingBytes: mebi }, upload);
    const bytes = Buffer.from(Array.from({ length: mebi }, (_, index) => (index * 2_654_435_761) >>> 24));
    expect(await reader.unpack(gzipSync(bytes, { level: 0 }), 'gzip', 'a', () => {})).toHaveLength(mebi);
  });
});
