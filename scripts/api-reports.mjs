// The public surface of every subpath, one report each in etc/. `--write` brings the reports up to date. Without it, a
// report that differs from the build fails and shows the difference, so that no name is published unseen.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CompilerState, Extractor, ExtractorConfig } from '@microsoft/api-extractor';
import { entryPoints } from './entry-points.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const etc = join(root, 'etc');
const scratch = mkdtempSync(join(tmpdir(), 'headgate-api-'));
const names = Object.keys(entryPoints);
const declarationsOf = (name) => join(root, 'dist', `${name}.d.ts`);
const reportOf = (name) => (name === 'index' ? 'headgate.api.md' : `headgate-${name}.api.md`);

const compilerOptions = {
  target: 'ES2022',
  lib: ['ES2022', 'ESNext.Disposable', 'DOM'],
  module: 'NodeNext',
  types: ['node'],
  strict: true,
  skipLibCheck: true,
};
const silent = { default: { logLevel: 'none' } };

function configOf(name) {
  return ExtractorConfig.prepare({
    configObjectFullPath: undefined,
    packageJsonFullPath: join(root, 'package.json'),
    configObject: {
      projectFolder: root,
      mainEntryPointFilePath: declarationsOf(name),
      newlineKind: 'lf',
      compiler: { overrideTsconfig: { compilerOptions, files: names.map(declarationsOf) } },
      apiReport: {
        enabled: true,
        reportFileName: reportOf(name),
        reportFolder: scratch,
        reportTempFolder: join(scratch, 'temp'),
        includeForgottenExports: true,
      },
      docModel: { enabled: false },
      dtsRollup: { enabled: false },
      tsdocMetadata: { enabled: false },
      messages: { compilerMessageReporting: silent, extractorMessageReporting: silent, tsdocMessageReporting: silent },
    },
  });
}

let compilerState;

/** The extractor's report: what the subpath exports, and what these declarations are made of. */
function extract(name) {
  const config = configOf(name);
  compilerState ??= CompilerState.create(config);
  Extractor.invoke(config, {
    localBuild: true, // writes the report in place of comparing it
    compilerState,
    messageCallback: (message) => {
      message.handled = message.logLevel !== 'error';
    },
  });
  return readFileSync(join(scratch, reportOf(name)), 'utf8').replace(
    'for "headgate"',
    `for "headgate${name === 'index' ? '' : `/${name}`}"`,
  );
}

/** A declaration with the tag above it: they stand apart by empty lines. */
const declarationsIn = (report) => report.split(/\n\n(?=\/\/ @)/);
const withoutExport = (declaration) => declaration.replace(/^export /m, '');
const isExported = (declaration) => /^export /m.test(declaration);

/** Subpaths use types of the package's root everywhere: one report has them, and the others leave them out. */
function withoutDeclarationsOf(rootReport, report) {
  const known = new Set(declarationsIn(rootReport).map(withoutExport));
  return declarationsIn(report)
    .filter((declaration) => isExported(declaration) || !known.has(declaration))
    .join('\n\n');
}

function compare(file, report) {
  const path = join(etc, file);
  if (existsSync(path) && readFileSync(path, 'utf8') === report) return true;
  writeFileSync(join(scratch, file), report);
  const { stdout } = spawnSync('diff', ['--unified', '--new-file', path, join(scratch, file)], { encoding: 'utf8' });
  console.log(`etc/${file} is out of date:\n${stdout}`);
  return false;
}

const rootReport = extract('index');
const reports = new Map(
  names.map((name) => [
    reportOf(name),
    name === 'index' ? rootReport : withoutDeclarationsOf(rootReport, extract(name)),
  ]),
);

mkdirSync(etc, { recursive: true });
const leftOver = readdirSync(etc).filter((file) => file.endsWith('.api.md') && !reports.has(file));
if (process.argv.includes('--write')) {
  for (const [file, report] of reports) writeFileSync(join(etc, file), report);
  for (const file of leftOver) rmSync(join(etc, file));
} else {
  for (const file of leftOver) console.log(`etc/${file} reports a subpath that does not exist.`);
  const isCurrent = [...reports].map(([file, report]) => compare(file, report)).every(Boolean);
  if (!isCurrent || leftOver.length > 0) {
    console.log('The public surface changed. Where that is intended, run `npm run api` and commit the reports.');
    process.exitCode = 1;
  }
}
rmSync(scratch, { recursive: true, force: true });
