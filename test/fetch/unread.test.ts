/** Answers that nobody reads: their seat comes back when the server has ended, and the process may end. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { build } from 'esbuild';
import { beforeAll, describe, expect, it } from 'vitest';
import { until, within } from '../integration/support/until.js';
import { expectIdle, gated } from './flow.js';
import { type Behaviour, sendText, stall, startModelServer } from './model-server.js';

const kiB = 1024;
const answers: [string, Behaviour, string][] = [
  ['a short body', ({ res }) => res.end('{"error":"no"}'), 'GET'],
  ['an error with a short body', ({ res }) => res.writeHead(404).end('{"error":"no"}'), 'GET'],
  ['a body of 63 KiB', ({ res }) => res.end(Buffer.alloc(63 * kiB)), 'GET'],
  ['content-length: 0', ({ res }) => res.writeHead(200, { 'content-length': '0' }).end(), 'GET'],
  ['an empty body in chunks', ({ res }) => res.writeHead(200, { 'transfer-encoding': 'chunked' }).end(), 'GET'],
  ['204', ({ res }) => res.writeHead(204).end(), 'GET'],
  ['304', ({ res }) => res.writeHead(304).end(), 'GET'],
  ['HEAD', ({ res }) => res.writeHead(200, { 'content-length': '7' }).end(), 'HEAD'],
];

describe('an answer that nobody reads', () => {
  it.each(answers)(
    'gives its seat back when it has come, and the next call goes: %s',
    async (_what, behave, method) => {
      const server = await startModelServer(behave);
      const setup = gated();
      const kept = [await setup.fetch(server.url, { method })];
      kept.push(await setup.fetch(server.url, { method }));
      await expectIdle(setup);
      expect(setup.fetch.counts.unread).toBe(0);
      expect(await kept[0]!.text()).toBe(await kept[1]!.text());
    },
  );

  it.each([
    ['204', ({ res }) => res.writeHead(204).end()],
    ['HEAD', ({ res }) => res.writeHead(200).end()],
    ['content-length: 0', ({ res }) => res.writeHead(500, { 'content-length': '0' }).end()],
  ] as [string, Behaviour][])(
    'has no seat any more when the caller gets it, where it is empty: %s',
    async (what, behave) => {
      const server = await startModelServer(behave);
      const setup = gated();
      await setup.fetch(server.url, { method: what === 'HEAD' ? 'HEAD' : 'GET' });
      expect(setup.flow.stats().inFlight).toBe(0);
    },
  );

  it('is a stream that holds its seat until the server has ended it', async () => {
    const server = await startModelServer(stall);
    const setup = gated();
    const answer = await setup.fetch(server.url, { method: 'POST', body: '{"stream":true}' });
    expect(setup.flow.stats().inFlight).toBe(1);
    sendText(server.asked[0]!, 'ved');
    server.asked[0]!.res.end();
    await expectIdle(setup);
    expect(await answer.text()).toContain('ved');
  });

  it('is told of its usage all the same', async () => {
    const server = await startModelServer();
    const setup = gated();
    const usages: object[] = [];
    setup.flow.on('released', ({ lease }) => usages.push(lease.usage));
    const answer = await setup.fetch(server.url, { method: 'POST', body: '{"model":"m"}' });
    await expectIdle(setup);
    expect(usages).toEqual([{ promptTokens: 7, completionTokens: 2 }]);
    expect(answer.bodyUsed).toBe(false);
  });

  it('is read ahead by 64 KiB and no more: the rest stays with the server, and the seat is taken', async () => {
    let sentBytes = 0;
    const endless = new ReadableStream<Uint8Array>(
      {
        pull(controller) {
          sentBytes += kiB;
          controller.enqueue(new Uint8Array(kiB));
        },
      },
      { highWaterMark: 0 },
    );
    const setup = gated({ fetch: async () => new Response(endless) });
    const answer = await setup.fetch('http://model/');
    await until('it is read ahead', () => sentBytes > 60 * kiB);
    await new Promise((resolve) => setImmediate(resolve));
    const aheadBytes = sentBytes;
    expect(aheadBytes).toBeLessThanOrEqual(64 * kiB);
    expect(setup.flow.stats().inFlight).toBe(1);
    const reader = answer.body!.getReader();
    await reader.read();
    await until('it is read on', () => sentBytes === aheadBytes + kiB);
    await reader.cancel();
    await expectIdle(setup);
  });

  it('keeps what came before it broke off', async () => {
    const server = await startModelServer((asked) => {
      stall(asked);
      setImmediate(() => asked.res.destroy());
    });
    const setup = gated();
    const reader = (await setup.fetch(server.url, { method: 'POST', body: '{"stream":true}' })).body!.getReader();
    await expectIdle(setup);
    expect(new TextDecoder().decode((await reader.read()).value)).toContain('ser');
    await expect(
      (async () => {
        while (!(await reader.read()).done);
      })(),
    ).rejects.toThrow('terminated');
  });

  it('fails with the reason of a caller that aborts afterwards', async () => {
    const server = await startModelServer(({ res }) => res.end('served'));
    const setup = gated();
    const abort = new AbortController();
    const answer = await setup.fetch(server.url, { signal: abort.signal });
    await expectIdle(setup);
    abort.abort(new Error('the page was closed'));
    await expect(answer.text()).rejects.toThrow('the page was closed');
  });

  it('ends its reader although the fetch below does not heed its signal', async () => {
    const setup = gated({ fetch: async () => new Response(new ReadableStream()) });
    const abort = new AbortController();
    const text = (await setup.fetch('http://model/', { signal: abort.signal })).text();
    abort.abort();
    await expect(within('the reader is told', text)).rejects.toMatchObject({ name: 'AbortError' });
    await expectIdle(setup);
  });
});

describe('a refusal whose body does not come', () => {
  it('is not waited for longer than nothing of an answer may pass', async () => {
    const server = await startModelServer(({ res }) => void res.writeHead(503).write('{'));
    const setup = gated({ timeouts: { idle: 20 } });
    await expect(within('the call ends', setup.fetch(server.url))).rejects.toMatchObject({ name: 'TimeoutError' });
    await expectIdle(setup);
  });
});

describe('a program that leaves answers unread', () => {
  let program = '';
  beforeAll(async () => {
    program = join('test-results', 'unread-program.mjs');
    await build({
      entryPoints: ['test/fetch/unread-program.ts'],
      outfile: program,
      bundle: true,
      platform: 'node',
      format: 'esm',
      target: 'node20',
      packages: 'external',
    });
  });

  it.each(['fetch', 'flowFetch', 'flowMiddleware', 'undici'])('ends: %s', async (how) => {
    const server = await startModelServer();
    const child = spawn(process.execPath, [program, how, server.url], { stdio: 'inherit', timeout: 60_000 });
    const [code, signal] = await once(child, 'exit');
    expect([code, signal, server.asked.length]).toEqual([0, null, 2]);
  });
});
