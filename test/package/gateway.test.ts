/**
 * `npm run demo -- serve` as a user finds it: real model-server processes, the gateway, the curl that it prints, and the
 * `openai` client.
 */
import { type ChildProcess, execFile, fork, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const gatewayFolder = new URL('../../examples/gateway/', import.meta.url);
const exec = promisify(execFile);

let serve: ChildProcess;
let printed = '';
let url = '';

beforeAll(async () => {
  await exec(process.execPath, ['scripts/build.mjs', '--if-stale'], { cwd: root });
  serve = spawn(process.execPath, ['examples/gateway/serve.mjs'], { cwd: root, env: { ...process.env, PORT: '0' } });
  await new Promise<void>((resolve, reject) => {
    serve.stdout?.on('data', (chunk: Buffer) => {
      printed += chunk.toString();
      url = /listens on (http:\S+),/.exec(printed)?.[1] ?? '';
      if (printed.includes("}'\n")) resolve();
    });
    serve.on('exit', () => reject(new Error(`the gateway ended\n${printed}`)));
  });
});

afterAll(async () => {
  const ended = new Promise((resolve) => serve.on('exit', resolve));
  serve.kill('SIGINT');
  await ended;
});

/** Does what the printed command would do: curl is not on every machine. */
async function paste(command: string): Promise<Response> {
  const [, method, to = ''] = /curl -N -X (\w+) (\S+) /.exec(command) ?? [];
  const headers = [...command.matchAll(/-H '([^:]+): ([^']+)'/g)].map(
    ([, name, value]) => [name, value] as [string, string],
  );
  const body = /-d '([^']+)'/.exec(command)?.[1];
  expect(to).toBe(`${url}/v1/completions`);
  expect(headers.map(([name]) => name)).toEqual([
    'Content-Type',
    'x-gateway-inference-fairness-id',
    'x-gateway-inference-objective',
  ]);
  return fetch(to, { method: method ?? '', headers, body: body ?? '' });
}

describe('the gateway', () => {
  it('answers the curl that it prints with a stream', async () => {
    const response = await paste(printed.slice(printed.indexOf('curl')));
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toContain('text/event-stream');
    expect(Number(response.headers.get('x-llm-d-flow-queue-duration-ms'))).toBeGreaterThanOrEqual(0);
    const text = await response.text();
    expect(text.match(/^data: \{/gm)?.length).toBeGreaterThan(1);
    expect(text.trimEnd()).toMatch(/data: \[DONE\]$/);
  });

  it('streams to the openai client unmodified, and answers it whole', async () => {
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0 });
    const messages = [{ role: 'user', content: 'Say hello' }] as const;
    const stream = await client.chat.completions.create({
      model: 'default-model',
      messages: [...messages],
      max_tokens: 8,
      stream: true,
    });
    let streamed = '';
    for await (const chunk of stream) streamed += chunk.choices[0]?.delta?.content ?? '';
    expect(streamed).not.toBe('');
    const whole = await client.chat.completions.create({
      model: 'default-model',
      messages: [...messages],
      max_tokens: 8,
    });
    expect(whole.choices[0]?.message.content).not.toBe('');
    expect(whole.usage?.completion_tokens).toBe(8);
    expect((await client.models.list()).data.map(({ id }) => id)).toContain('default-model');
  });

  it('takes an abort of the openai client for what it is', async () => {
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0 });
    const stream = await client.completions.create({
      model: 'default-model',
      prompt: 'Say hello',
      max_tokens: 2000,
      stream: true,
    });
    for await (const _ of stream) stream.controller.abort();
    const after = await client.completions.create({ model: 'default-model', prompt: 'Say hello', max_tokens: 2 });
    expect(after.usage?.completion_tokens).toBe(2);
  });
});

describe('flow headers without trust', () => {
  /**
   * One gateway before a server that keeps everything: what is beyond the seats waits, and what is beyond its band's
   * limit is dropped.
   */
  async function dropped(tokens: number, ...trust: string[]): Promise<number> {
    const upstream = fork(fileURLToPath(new URL('model-server.mjs', gatewayFolder)), [], {
      execArgv: [],
      silent: true,
    });
    const listening = (child: ChildProcess): Promise<string> =>
      new Promise((resolve) =>
        child.on(
          'message',
          (message: { type: string; url: string }) => message.type === 'listening' && resolve(message.url),
        ),
      );
    const server = await listening(upstream);
    const gateway = fork(fileURLToPath(new URL('gateway.mjs', gatewayFolder)), ['--server', `s=${server}`, ...trust], {
      execArgv: [],
      silent: true,
    });
    try {
      const to = await listening(gateway);
      const headers = {
        'content-type': 'application/json',
        'x-gateway-inference-objective': 'best-effort-traffic',
        'x-gateway-inference-fairness-id': 'batch',
      };
      const body = JSON.stringify({ model: 'default-model', prompt: 'Say hello', max_tokens: tokens });
      // Nobody waits for the others once it shows.
      const shown = new AbortController();
      let count = 0;
      const ask = async (): Promise<void> => {
        const init = { method: 'POST', headers, body, signal: shown.signal };
        const response = await fetch(`${to}/v1/completions`, init);
        if (response.status === 429) count++;
        if (count > 5) shown.abort();
        await response.text();
      };
      await Promise.allSettled(Array.from({ length: 60 }, ask));
      return count;
    } finally {
      upstream.kill('SIGKILL');
      gateway.kill('SIGKILL');
    }
  }

  it('have no effect; with it they name the band', async () => {
    // 15 run; the standard band holds 200 more, the best-effort one 20. Long answers end after the last request has come,
    // however slow the machine is.
    expect(await dropped(20)).toBe(0);
    expect(await dropped(2_000, '--trust-flow-headers')).toBe(6);
  });
});
