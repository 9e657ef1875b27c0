// Runs headgate/fetch on Bun and on Deno, and on this Node beside them: one bundle, test/fetch/other-runtimes.ts, against
// one model server. The binaries come from the npm packages of these names, into a temporary folder.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('..', import.meta.url));
const limitMs = 600_000;
const folder = mkdtempSync(join(tmpdir(), 'headgate-runtimes-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

/** Resolves to what it printed. */
function run(program, args) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], timeout: limitMs });
    const output = [];
    child.stdout.on('data', (chunk) => output.push(chunk));
    child.stderr.on('data', (chunk) => output.push(chunk));
    child.on('error', reject);
    child.on('close', (code, signal) => {
      const text = Buffer.concat(output).toString().trim();
      if (code === 0) resolve(text);
      else reject(new Error(`${program} ended with ${signal ?? `exit code ${code}`}\n${text}`));
    });
  });
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

const outfile = join(folder, 'elsewhere.mjs');
const entry = join(root, 'test/fetch/other-runtimes.ts');
const options = { mainFields: ['module', 'main'], conditions: ['import'], format: 'esm', logLevel: 'error' };
await build({ entryPoints: [entry], outfile, bundle: true, platform: 'neutral', external: ['node:*'], ...options });

await run('npm', ['install', '--prefix', folder, '--no-audit', '--no-fund', '--no-save', 'bun', 'deno']);
const binary = (name) => join(folder, 'node_modules/.bin', name);
const runtimes = [
  ['Node', process.execPath, []],
  ['Bun', binary('bun'), []],
  ['Deno', binary('deno'), ['run', '--allow-all']],
];
for (const [name, program, args] of runtimes) {
  const version = (await run(program, ['--version'])).split('\n')[0];
  if ((await run(program, [...args, outfile, url])) !== 'ok') throw new Error(`${name} does not say ok`);
  console.log(`${name} (${version}): headgate/fetch and headgate/ai run`);
}
process.exit(0);
