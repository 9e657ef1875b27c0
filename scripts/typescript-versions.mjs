// Compiles a program against the declarations of the built package with several versions of TypeScript: one that
// imports every subpath, as a module and by require, and one with a single controller, whose cost in types is bounded.
// Errors in the declarations of others do not count: they say which TypeScript they are for.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { entryPoints } from './entry-points.mjs';
import { runProgram } from './run-program.mjs';

const versions = ['5.4', '5.9', '6.0', 'latest'];
/** What one controller may add to an empty program. */
const most = { Types: 1_000, Instantiations: 1_000 };

const root = fileURLToPath(new URL('..', import.meta.url));
mkdirSync(join(root, 'test-results'), { recursive: true });
// Inside the package, so that its own name and its peers resolve.
const folder = mkdtempSync(join(root, 'test-results/typescript-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

const names = Object.keys(entryPoints).map((name) => (name === 'index' ? 'headgate' : `headgate/${name}`));
const controller = `import { FlowController, concurrencyDetector } from 'headgate';
export const flow = new FlowController({ saturationDetector: concurrencyDetector({ maxConcurrency: 8 }) });
export const seats: Promise<number> = flow.run({ byteSize: 1 }, { fairnessId: 'a', priority: 0 }, () => 1);
`;
const sources = {
  'modules.mts': names
    .map((name, i) => `import * as m${i} from '${name}';\nexport type M${i} = typeof m${i};`)
    .join('\n'),
  'requires.cts': names
    .map((name, i) => `import m${i} = require('${name}');\nexport type M${i} = typeof m${i};`)
    .join('\n'),
  'controller.mts': controller,
  'empty.mts': 'export {};\n',
};
for (const [name, text] of Object.entries(sources)) writeFileSync(join(folder, name), text);

const compilerOptions = { noEmit: true, strict: true, target: 'es2022', module: 'nodenext', types: ['node'] };
const lib = ['es2022', 'dom', 'dom.iterable', 'esnext.disposable'];
const programs = {
  all: { compilerOptions: { ...compilerOptions, lib }, files: ['modules.mts', 'requires.cts'] },
  empty: { compilerOptions: { ...compilerOptions, skipLibCheck: true }, files: ['empty.mts'] },
  controller: { compilerOptions: { ...compilerOptions, skipLibCheck: true }, files: ['controller.mts'] },
};
for (const [name, program] of Object.entries(programs))
  writeFileSync(join(folder, `${name}.json`), JSON.stringify(program));

function figuresIn(text) {
  return Object.fromEntries(
    Object.keys(most).map((name) => {
      const found = new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(text);
      if (found === null) throw new Error(`no figure ${name} in:\n${text}`);
      return [name, Number(found[1])];
    }),
  );
}

const faults = [];
for (const version of versions) {
  const at = join(folder, `node-${version}`);
  const installed = await runProgram('npm', [
    'install',
    '--prefix',
    at,
    '--no-audit',
    '--no-fund',
    `typescript@${version}`,
  ]);
  if (installed.code !== 0) throw new Error(installed.text);
  const tsc = (...args) =>
    runProgram(join(at, 'node_modules/.bin/tsc'), ['--pretty', 'false', ...args], { cwd: folder });
  const { text: named } = await tsc('--version');
  const { text } = await tsc('-p', 'all.json');
  const lines = text.split('\n').filter((line) => /error TS\d+/.test(line));
  const others = lines.filter((line) => /^(\.\.\/)*node_modules\//.test(line)).length;
  const ours = lines.filter((line) => !/^(\.\.\/)*node_modules\//.test(line));
  faults.push(...ours.map((line) => `${named.trim()}: ${line}`));
  const cost = async (name) => figuresIn((await tsc('-p', `${name}.json`, '--extendedDiagnostics')).text);
  const [empty, one] = [await cost('empty'), await cost('controller')];
  const added = Object.keys(most).map((name) => [name, one[name] - empty[name]]);
  for (const [name, count] of added)
    if (count > most[name]) faults.push(`${named.trim()}: ${name}: ${count} of ${most[name]} for one controller`);
  const told = added.map(([name, count]) => `${count} ${name.toLowerCase()}`).join(', ');
  console.log(`${named.trim()}: ${ours.length} errors, ${others} in packages of others; a controller costs ${told}`);
}
for (const fault of faults) console.error(fault);
process.exitCode = faults.length === 0 ? 0 : 1;
