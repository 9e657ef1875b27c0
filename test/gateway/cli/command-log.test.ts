/** What the command says on standard error, from its first line to its last. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bufferedWriter } from '../../../src/gateway/cli/command-log.js';
import { until } from '../../integration/support/until.js';
import { bundleCli, type CliProcess } from '../support/bundled-cli.js';

let cli: Awaited<ReturnType<typeof bundleCli>>;
let folder: string;
beforeAll(async () => {
  cli = await bundleCli();
  folder = mkdtempSync(join(tmpdir(), 'headgate-log-'));
});
afterAll(() => {
  cli.remove();
  rmSync(folder, { recursive: true, force: true });
});

function fileOf(name: string, content: object | string): string {
  const file = join(folder, name);
  writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content));
  return file;
}

const gateway = {
  listen: { port: 0 },
  upstreams: [{ id: 'gpu-0', url: 'http://127.0.0.1:9' }],
  plugins: [{ type: 'concurrency-detector' }],
  flowControl: { saturationDetector: { pluginRef: 'concurrency-detector' }, maxRequests: 100 },
  log: { format: 'json' },
};

/** Every line, which all must be JSON. */
function linesOf({ stderr }: { stderr: string }): Record<string, unknown>[] {
  return stderr
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}

const hears = (running: CliProcess, event: string, count = 1) =>
  until(`${event} is logged: ${running.stderr}`, () => running.events(event).length >= count, 30_000);

describe('in JSON every line is JSON, with the name of the file', () => {
  it('at the start, at a warning of Node or of a plugin, at a reload, at a refused one and at the end', async () => {
    const file = fileOf('whole.yaml', { ...gateway, plugins: [...gateway.plugins, { type: 'unknown-scorer' }] });
    const preload = `process.on('SIGUSR2', () => (process.emitWarning('mind the gap'), console.warn('said by %s', 'a plugin')))`;
    const options = { NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(preload)}` };
    const running = cli.start(['gateway', '--config', file], options);
    await hears(running, 'listening');
    running.child.kill('SIGUSR2');
    await hears(running, 'node-warning');
    await hears(running, 'console');
    fileOf('whole.yaml', { ...gateway, flowControl: { ...gateway.flowControl, maxRequests: 50 } });
    running.child.kill('SIGHUP');
    await hears(running, 'reloaded');
    fileOf('whole.yaml', { ...gateway, listen: { port: -1 }, drain: { waiting: 'soon' } });
    running.child.kill('SIGHUP');
    await hears(running, 'reload-refused');
    running.child.kill('SIGTERM');
    const lines = linesOf(await running.ended);
    expect(lines.map(({ event }) => event)).toEqual([
      'config',
      'listening',
      'console',
      'node-warning',
      'reloaded',
      'fault',
      'fault',
      'reload-refused',
      'draining',
      'stopped',
    ]);
    expect(lines.flatMap((line) => line.file ?? [])).toEqual(new Array(6).fill(file));
    expect(lines[0]?.message).toContain('unknown-scorer');
    expect(lines[2]).toMatchObject({ level: 'warn', message: 'said by a plugin' });
    expect(lines[3]).toMatchObject({ level: 'warn', message: 'mind the gap' });
    expect(lines[4]).toMatchObject({ changed: 'plugins[unknown-scorer]: removed; flowControl.maxRequests: 100 → 50' });
    expect(lines[5]).toMatchObject({
      level: 'error',
      path: 'listen.port',
      expected: expect.any(String),
      got: expect.any(String),
    });
    expect(lines[7]).toMatchObject({ problems: 2 });
  });

  it('when it cannot start: each fault, or what went wrong', async () => {
    const faulty = fileOf('faulty.yaml', { ...gateway, upstreams: [{ id: 'gpu-0', url: 'gpu' }] });
    const lines = linesOf(await cli.start(['gateway', '-c', faulty]).ended);
    expect(lines).toMatchObject([
      { event: 'fault', file: faulty, path: 'upstreams[0].url' },
      { event: 'not-started', file: faulty, problems: 1 },
    ]);
    const missing = join(folder, 'missing.yaml');
    const unread = await cli.start(['gateway', '-c', missing, '--log-format', 'json']).ended;
    expect(linesOf(unread)).toMatchObject([
      { event: 'not-started', file: missing, error: expect.stringContaining('ENOENT') },
    ]);
    expect(unread.status).toBe(1);
  });

  it('for people: the message that lists every fault', async () => {
    const file = fileOf('text.yaml', {
      ...gateway,
      log: {},
      upstreams: [{ id: 'gpu-0', url: 'gpu' }],
      listen: { port: -1 },
    });
    const { stderr } = await cli.start(['gateway', '-c', file]).ended;
    expect(stderr).toMatch(/listen\.port: expected .*\n.*upstreams\[0\]\.url: expected/);
    expect(stderr).toContain(file);
  });
});

describe('the writer', () => {
  it('joins lines, keeps their order, and writes at once when much is held', () => {
    const written: string[] = [];
    const { write, flush } = bufferedWriter((text) => written.push(text));
    write('a\n');
    write('b\n');
    expect(written).toEqual([]);
    flush();
    flush();
    expect(written).toEqual(['a\nb\n']);
    write('x'.repeat(70_000));
    expect(written).toHaveLength(2);
  });
});

it('of one of many writers goes out in whole lines, in pieces that a pipe takes as a whole', () => {
  const written: string[] = [];
  const { write, flush } = bufferedWriter((text) => written.push(text), 100);
  for (let line = 0; line < 7; line++) write(`${'x'.repeat(39)}\n`);
  write(`${'y'.repeat(300)}\n`);
  flush();
  expect(written.map(({ length }) => length)).toEqual([80, 80, 80, 40, 301]);
});
