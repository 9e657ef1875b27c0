/** The adapter by which a benchmark harness puts headgate beside its peers. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';

interface Subject {
  submit<T>(
    job: () => T | PromiseLike<T>,
    options?: { priority?: number; key?: unknown; signal?: AbortSignal },
  ): Promise<T>;
  keyCount(): number;
  close(): Promise<void>;
}

interface Adapter {
  readonly name: string;
  readonly kind: string;
  readonly caps: Record<string, boolean>;
  create(shape: { concurrency: number; priorities?: unknown; keyed?: unknown; abort?: unknown }): Subject;
}

const root = new URL('../../', import.meta.url);
let adapter: Adapter;

beforeAll(async () => {
  await promisify(execFile)(process.execPath, ['scripts/build.mjs', '--if-stale'], { cwd: fileURLToPath(root) });
  adapter = ((await import(new URL('bench/adapter.mjs', root).href)) as { default: Adapter }).default;
});

describe('bench/adapter.mjs', () => {
  it('says what it can do', () => {
    expect(adapter).toMatchObject({
      name: 'headgate',
      kind: 'subject',
      caps: { priority: true, abort: true, keys: true },
    });
  });

  it('returns results, passes failures on, and runs no more at a time than it may', async () => {
    const subject = adapter.create({ concurrency: 3 });
    let running = 0;
    let most = 0;
    const jobs = Array.from({ length: 50 }, (_, i) =>
      subject.submit(async () => {
        most = Math.max(most, ++running);
        await new Promise((resolve) => setImmediate(resolve));
        running--;
        return i;
      }),
    );
    expect(await Promise.all(jobs)).toEqual(Array.from({ length: 50 }, (_, i) => i));
    expect(most).toBe(3);
    await expect(subject.submit(() => Promise.reject(new Error('mine')))).rejects.toThrow('mine');
    await subject.close();
  });

  it('lets higher priorities go first, and keys in turn', async () => {
    const order: string[] = [];
    const subject = adapter.create({ concurrency: 1, priorities: 3, keyed: true });
    const submit = (name: string, options: object): Promise<void> =>
      subject.submit(() => void order.push(name), options);
    await Promise.all([
      submit('runs', { key: 'a' }),
      submit('a1', { key: 'a' }),
      submit('a2', { key: 'a' }),
      submit('b1', { key: 'b' }),
      submit('high', { key: 'b', priority: 2 }),
    ]);
    expect(order).toEqual(['runs', 'high', 'a1', 'b1', 'a2']);
    expect(subject.keyCount()).toBeGreaterThanOrEqual(2);
    await subject.close();
  });

  it('rejects with the reason when aborted while queued', async () => {
    const subject = adapter.create({ concurrency: 1, abort: true });
    let finish = (): void => {};
    const running = subject.submit(() => new Promise<void>((resolve) => (finish = resolve)));
    const abort = new AbortController();
    const waiting = subject.submit(() => 'never', { signal: abort.signal });
    abort.abort(new Error('changed my mind'));
    await expect(waiting).rejects.toThrow('changed my mind');
    await expect(subject.submit(() => 'never', { signal: abort.signal })).rejects.toThrow('changed my mind');
    finish();
    await running;
    await subject.close();
  });
});
