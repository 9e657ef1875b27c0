// Fuzzes each target of fuzz/ by coverage: `npm run fuzz -- --seconds 600`, `--seed 5`, `--only json`; `--keep` puts what
// reached new code into fuzz/corpus. What breaks a target is written to test-results/, and becomes a case of the
// corpus. Jazzer.js would do it, but its native part asks for a newer C library than Debian 12 has.
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { build } from 'esbuild';
import { runProgram } from './run-program.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const targets = readdirSync(join(root, 'fuzz/corpus'));
/** Of what one run finds. */
const mostKept = 16;

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '10' },
    seed: { type: 'string', default: '1' },
    only: { type: 'string' },
    keep: { type: 'boolean', default: false },
  },
});
if (values.only !== undefined && !targets.includes(values.only)) {
  console.error(`--only: expected one of ${targets.join(', ')}; got ${values.only}`);
  process.exit(2);
}

const folder = mkdtempSync(join(tmpdir(), 'headgate-fuzz-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
mkdirSync(join(root, 'test-results'), { recursive: true });

/** True when nothing broke it. */
async function fuzz(name) {
  const outfile = join(folder, `${name}.mjs`);
  const options = { bundle: true, platform: 'node', format: 'esm', target: 'node20', logLevel: 'error' };
  const banner = { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" };
  const contents = `export { fuzz } from './fuzz/${name}.js'; export { seededRandom } from './src/base/seeded-random.js';`;
  await build({ stdin: { contents, resolveDir: root }, outfile, banner, ...options });
  const kept = join(root, 'fuzz/corpus', name);
  const corpus = join(folder, 'corpus', name);
  cpSync(kept, corpus, { recursive: true });
  const program = fileURLToPath(new URL('./fuzz-target.mjs', import.meta.url));
  const broken = join(root, 'test-results', `fuzz-${name}-`);
  const args = [program, outfile, corpus, values.seconds, values.seed, broken];
  const timeout = (Number(values.seconds) + 120) * 1_000;
  const { code, text } = await runProgram(process.execPath, args, { timeout });
  console.log(`${name}: ${code === 0 ? text : `BROKEN${code === null ? ', it hangs' : ''}\n${text}`}`);
  if (values.keep && code === 0) {
    const found = readdirSync(corpus).filter((file) => !readdirSync(kept).includes(file));
    for (const file of found.slice(0, mostKept)) cpSync(join(corpus, file), join(kept, file));
  }
  return code === 0;
}

const chosen = values.only === undefined ? [...targets] : [values.only];
const verdicts = [];
// Two at a time: each is one thread.
async function lane() {
  for (let name = chosen.shift(); name !== undefined; name = chosen.shift()) verdicts.push(await fuzz(name));
}
await Promise.all([lane(), lane()]);
process.exitCode = verdicts.every(Boolean) ? 0 : 1;
