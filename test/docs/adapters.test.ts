/** The snippets of docs/http.md that stand for themselves run as printed. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { FastifyInstance } from 'fastify';
import type { Hono } from 'hono';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';

const root = new URL('../../', import.meta.url);
/** Inside the package, so that the snippets' imports resolve as a user's would, by the package's own name. */
const scratch = new URL('test-results/adapter-snippets/', root);
const page = readFileSync(new URL('docs/http.md', root), 'utf8');
const complete = `const complete = async (body, { signal }) => ({ body, aborted: signal.aborted });
const tenantOf = (key = 'anonymous') => key;\n`;

async function load<T>(name: string, more = '', upstream = 'http://localhost:8000'): Promise<T> {
  const snippets = [...page.matchAll(/<!-- run by test\/docs\/adapters.test.ts -->\n```js\n(.*?)```/gs)].map(
    ([, code = '']) => code,
  );
  const code = snippets.find((text) => text.includes(`'headgate/${name}'`))?.replace('http://localhost:8000', upstream);
  const file = new URL(`${name}.mjs`, scratch);
  writeFileSync(file, `${complete}${code}${more}`);
  return import(/* @vite-ignore */ pathToFileURL(fileURLToPath(file)).href);
}

/** The address of a server that answers what it is sent. */
async function echo(): Promise<string> {
  const server = http.createServer((req, res) => void req.pipe(res));
  await new Promise<void>((resolve) => server.listen(0, resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://localhost:${(server.address() as AddressInfo).port}`;
}

beforeAll(() => mkdirSync(scratch, { recursive: true }));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const completion = { url: '/v1/completions', method: 'POST', headers: { 'content-type': 'application/json' } } as const;
const answer = { body: { prompt: 'hello' }, aborted: false };

describe('docs/http.md', () => {
  it('Fastify', async () => {
    const { app } = await load<{ app: FastifyInstance }>('fastify', 'export { app };');
    onTestFinished(() => void app.close());
    const { headers, ...response } = await app.inject({ ...completion, payload: { prompt: 'hello' } });
    expect(response.json()).toEqual(answer);
    expect(headers['x-llm-d-flow-queue-duration-ms']).toBe('0');
    expect((await app.inject('/health')).headers).not.toHaveProperty('x-llm-d-flow-queue-duration-ms');
  });

  it('Hono, and the calls that a request causes', async () => {
    const { app } = await load<{ app: Hono }>('hono', 'export { app };', await echo());
    const response = await app.request(completion.url, { ...completion, body: JSON.stringify({ prompt: 'hello' }) });
    expect(await response.json()).toEqual(answer.body);
    expect(response.headers.get('x-llm-d-flow-queue-duration-ms')).toBe('0');
  });

  it('undici', async () => {
    const { ask } = await load<{ ask(url: string, body: string): Promise<string> }>('undici');
    expect(await ask(await echo(), 'hello')).toBe('hello');
  });
});
