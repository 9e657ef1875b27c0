/** AGENTS.md: its examples run, its file loads, and what it names exists. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { Express } from 'express';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { loadGatewayConfig } from '../../src/gateway/index.js';
import type { FlowController } from '../../src/index.js';
import { publicNames } from '../support/public-names.js';

const root = new URL('../../', import.meta.url);
const text = readFileSync(new URL('AGENTS.md', root), 'utf8');
const scratch = new URL('test-results/agents/', root);
const [first = '', second = ''] = [...text.matchAll(/<!-- run by .*?-->\n```js\n(.*?)```/gs)].map(([, code]) => code);

async function load<T>(name: string, code: string): Promise<T> {
  const file = new URL(`${name}.mjs`, scratch);
  writeFileSync(file, code);
  return import(/* @vite-ignore */ pathToFileURL(fileURLToPath(file)).href) as Promise<T>;
}

const opened: Server[] = [];
const portOf = async (server: Server): Promise<number> => {
  opened.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
};

beforeAll(() => mkdirSync(scratch, { recursive: true }));
afterAll(() => {
  for (const server of opened) server.close().closeAllConnections();
  rmSync(scratch, { recursive: true, force: true });
});

describe('the page for coding assistants', () => {
  it('has a function that shares eight seats, and drops nothing of forty calls', async () => {
    type Call = (prompt: string, signal: AbortSignal) => Promise<string>;
    const { flow, complete } = await load<{
      flow: FlowController;
      complete(prompt: string, tenant: string, call: Call): Promise<string>;
    }>('function', first);
    let running = 0;
    let most = 0;
    const call: Call = async (prompt) => {
      most = Math.max(most, ++running);
      await new Promise(setImmediate);
      running--;
      return `served ${prompt}`;
    };
    const answers = await Promise.all(Array.from({ length: 40 }, (_, n) => complete(`p${n}`, `t${n % 3}`, call)));
    expect(answers).toEqual(Array.from({ length: 40 }, (_, n) => `served p${n}`));
    expect(most).toBe(8);
    await flow.close();
  });

  it('has a middleware that relays a stream of events', async () => {
    const model = createServer((req, res) => {
      res.setHeader('content-type', 'text/event-stream');
      req.resume().on('end', () => res.end('data: {"choices":[{"delta":{"content":"hi"}}]}\n\ndata: [DONE]\n\n'));
    });
    const { appFor } = await load<{ appFor(upstream: string, tenantOf: () => string): Express }>('middleware', second);
    const app = appFor(`http://127.0.0.1:${await portOf(model)}`, () => 'acme');
    const port = await portOf(createServer(app));
    const answer = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"model":"m","messages":[],"stream":true}',
    });
    expect(answer.status).toBe(200);
    expect(await answer.text()).toContain('"content":"hi"');
  });

  it('has a gateway file without faults and warnings', () => {
    const [, file = ''] = /<!-- loaded by .*?-->\n```yaml\n(.*?)```/s.exec(text) ?? [];
    expect(loadGatewayConfig(file, { env: { CHAT_KEY: 'a', BATCH_KEY: 'b' } }).warnings).toEqual([]);
  });

  it('names subpaths and functions that exist', () => {
    const subpaths = [...text.matchAll(/`(?:headgate)?\/([a-z-]+)`/g)].map(([, name]) => `./${name}`);
    expect(subpaths.length).toBeGreaterThan(6);
    for (const subpath of subpaths) expect(Object.keys(manifest.exports)).toContain(subpath);
    const known = publicNames();
    for (const [, name = ''] of text.matchAll(/`([a-z]\w+)\((?:\{[^`]*)?\)`/g)) expect(known, name).toContain(name);
  });

  it('stays short', () => {
    expect(text.split(/\s+/).length).toBeLessThan(900);
  });
});
