// Runs the built package (core, fetch, ai, hono) on Bun, Deno and workerd, and on this Node beside them: test/runtimes,
// against one model server. The binaries come from the npm packages of these names, into a temporary folder.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { entryPoints } from './entry-points.mjs';
import { runProgram } from './run-program.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const limitMs = 600_000;
const folder = mkdtempSync(join(tmpdir(), 'headgate-runtimes-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

const told = (name, version) => console.log(`${name} (${version}): headgate, and its fetch, ai and hono, run`);

/** Resolves to what it printed. */
async function run(program, args) {
  const { code, text } = await runProgram(program, args, { timeout: limitMs });
  if (code !== 0) throw new Error(`${program} ended with ${code ?? 'a signal'}\n${text}`);
  return text;
}

/** Streams `served` in two pieces. */
const server = createServer((req, res) => {
  const piece = (content) => `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`;
  req.resume().on('end', () => {
    res.setHeader('content-type', 'text/event-stream').write(piece('ser'));
    setTimeout(() => res.end(`${piece('ved')}data: [DONE]\n\n`), 20);
  });
});
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
const url = `http://127.0.0.1:${server.address().port}`;

/** The tests import the sources; here these are the files that are published. */
const published = {
  name: 'published',
  setup({ onResolve }) {
    const files = Object.entries(entryPoints).map(([name, path]) => [join(root, path), join(root, `dist/${name}.js`)]);
    const byJs = new Map(files.map(([path, built]) => [path.replace(/\.ts$/, '.js'), built]));
    onResolve({ filter: /src\/.*\.js$/ }, ({ path, resolveDir }) => ({ path: byJs.get(join(resolveDir, path)) }));
  },
};
const options = { mainFields: ['module', 'main'], conditions: ['import'], format: 'esm', logLevel: 'error' };
for (const name of ['program', 'worker']) {
  const entryPoint = join(root, `test/runtimes/${name}.ts`);
  const outfile = join(folder, `${name}.mjs`);
  const external = name === 'program' ? ['node:*'] : [];
  await build({
    entryPoints: [entryPoint],
    outfile,
    bundle: true,
    platform: 'neutral',
    external,
    plugins: [published],
    ...options,
  });
}

await run('npm', ['install', '--prefix', folder, '--no-audit', '--no-fund', '--no-save', 'bun', 'deno', 'workerd']);
const binary = (name) => join(folder, 'node_modules/.bin', name);

const programs = [
  ['Node', process.execPath, []],
  ['Bun', binary('bun'), []],
  ['Deno', binary('deno'), ['run', '--allow-all']],
];
for (const [name, program, args] of programs) {
  const version = (await run(program, ['--version'])).split('\n')[0];
  if ((await run(program, [...args, join(folder, 'program.mjs'), url])) !== 'ok')
    throw new Error(`${name} does not say ok`);
  told(name, version);
}

// Cloudflare's runtime serves a handler. `compatibilityDate` is older than any workerd that npm will bring.
const config = `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = (
      modules = [(name = "worker.mjs", esModule = embed "worker.mjs")],
      compatibilityDate = "2025-01-01",
    )),
    (name = "internet", network = (allow = ["public", "private"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")],
);
`;
writeFileSync(join(folder, 'config.capnp'), config);
const workerd = spawn(binary('workerd'), ['serve', '--control-fd=3', join(folder, 'config.capnp')], {
  stdio: ['ignore', 'inherit', 'inherit', 'pipe'],
});
process.on('exit', () => workerd.kill('SIGKILL'));
const [listening] = await once(workerd.stdio[3], 'data', { signal: AbortSignal.timeout(limitMs) });
const { port } = JSON.parse(listening.toString().split('\n')[0]);
const answer = await fetch(`http://127.0.0.1:${port}/?model=${encodeURIComponent(url)}`);
const text = await answer.text();
if (text !== 'ok') throw new Error(`workerd: ${text}`);
told('workerd', await run(binary('workerd'), ['--version']));
process.exit(0);
