import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { builtinModules } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { codeOf } from '../../site/playground/code.js';
import { scenarioText } from '../../site/playground/scenario.js';
import { variants } from '../site/settings.js';

// The packed tarball, installed the way a user installs it: what runs and compiles here is what gets published.

const root = fileURLToPath(new URL('../..', import.meta.url));
const subpaths = Object.keys(manifest.exports).filter((path) => path !== './package.json');
const specifiers = subpaths.map((path) => path.replace('.', 'headgate'));
const bundles = subpaths.map((path) => path.slice(2) || 'index');

const exec = promisify(execFile);
let consumer = '';

/** Runs in the consumer's folder; a failure shows what the program printed. */
async function run(program: string, ...args: string[]): Promise<string> {
  try {
    const { stdout } = await exec(program, args, { cwd: consumer });
    return stdout;
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string };
    throw new Error(`${program} ${args.join(' ')}\n${stdout}${stderr}`);
  }
}

async function runScript(name: string, source: string): Promise<string> {
  await writeFile(join(consumer, name), source);
  return run(process.execPath, name);
}

async function typecheck(name: string, source: string, compilerOptions: object): Promise<void> {
  const options = { target: 'ES2022', strict: true, noEmit: true, types: ['node'], ...compilerOptions };
  await writeFile(join(consumer, name), source);
  await writeFile(join(consumer, 'tsconfig.json'), JSON.stringify({ compilerOptions: options, files: [name] }));
  await run(process.execPath, join(root, 'node_modules/typescript/bin/tsc'), '-p', 'tsconfig.json');
}

const installed = (path: string) => join(consumer, 'node_modules/headgate', path);

async function exportedNames(): Promise<Set<string>> {
  const sources = await Promise.all(bundles.map((name) => readFile(installed(`dist/${name}.js`), 'utf8')));
  return new Set(sources.flatMap((source) => source.match(/^export \{([^}]*)\}/m)?.[1]?.match(/\w+/g) ?? []));
}

beforeAll(async () => {
  consumer = await mkdtemp(join(tmpdir(), 'headgate-package-'));
  await run(process.execPath, join(root, 'scripts/build.mjs'), '--if-stale');
  await run('npm', 'pack', root, '--ignore-scripts', '--silent');
  const dependencies = {
    headgate: `file:headgate-${manifest.version}.tgz`,
    yaml: manifest.devDependencies.yaml,
    '@opentelemetry/api': manifest.devDependencies['@opentelemetry/api'],
    fastify: manifest.devDependencies.fastify,
    '@grpc/grpc-js': manifest.devDependencies['@grpc/grpc-js'],
    'grpc-health-check': manifest.devDependencies['grpc-health-check'],
    hono: manifest.devDependencies.hono,
    protobufjs: manifest.devDependencies.protobufjs,
    undici: manifest.devDependencies.undici,
    '@types/node': manifest.devDependencies['@types/node'],
  };
  await writeFile(join(consumer, 'package.json'), JSON.stringify({ private: true, dependencies }));
  await run(
    'npm',
    'install',
    '--prefer-offline',
    '--ignore-scripts',
    '--no-audit',
    '--no-fund',
    '--no-package-lock',
    '--silent',
  );
});

afterAll(() => rm(consumer, { recursive: true, force: true }));

describe('contents', () => {
  test('the tarball holds the build, the page for assistants and the legal texts only', async () => {
    const names = await readdir(installed('.'));
    expect(names).toEqual(
      expect.arrayContaining([
        'AGENTS.md',
        'CHANGELOG.md',
        'LICENSE',
        'THIRD_PARTY_NOTICES.md',
        'dist',
        'package.json',
      ]),
    );
    const others = names.filter(
      (name) =>
        ![
          'AGENTS.md',
          'CHANGELOG.md',
          'LICENSE',
          'THIRD_PARTY_NOTICES.md',
          'README.md',
          'dist',
          'package.json',
        ].includes(name),
    );
    expect(others).toEqual([]);
  });

  test('dist has one module and one declaration for each subpath and format', async () => {
    const names = await readdir(installed('dist'));
    // What several subpaths share of types, and of code for `require`, is in files with a hash in their names.
    const files = names.filter((name) => !/-[\w-]{8}\.(?:d\.c?ts|cjs)$/.test(name));
    const expected = bundles.flatMap((name) => ['js', 'cjs', 'd.ts', 'd.cts'].map((suffix) => `${name}.${suffix}`));
    const texts = ['help.txt', 'init-code.txt', 'init-gateway.txt'];
    expect(files.sort()).toEqual([...expected, 'cli.js', 'cli-commands.js', ...texts, 'schemas'].sort());
  });

  test.each(['js', 'cjs'])(
    'every public class exists once among the .%s files, so that instanceof works',
    async (suffix) => {
      const homes = new Map<string, string[]>();
      for (const name of (await readdir(installed('dist'))).filter((each) => each.endsWith(`.${suffix}`))) {
        if (/^cli\b/.test(name)) continue;
        const source = await readFile(installed(`dist/${name}`), 'utf8');
        // esbuild writes `var X = class _X` for a class that names itself, several in one `var`, and X2 beside an import of X.
        const classes = new Set(
          [...source.matchAll(/(?<=^|[;},]|\bvar )(?:(\w+) ?= ?class\b|class (\w+))/gm)].map((match) =>
            (match[1] ?? match[2] ?? '').replace(/\d+$/, ''),
          ),
        );
        for (const className of classes) homes.set(className, [...(homes.get(className) ?? []), name]);
      }
      expect(homes.get('FlowController')).toHaveLength(1);
      expect(homes.get('FlowControlError')).toHaveLength(1);
      const exported = await exportedNames();
      const copied = [...homes].filter(([className, names]) => names.length > 1 && exported.has(className));
      // Every subpath that is imported and reads options has what reads them. Such an error is told by its brand.
      expect(copied.map(([className]) => className)).toEqual(suffix === 'js' ? ['FlowConfigError'] : []);
    },
  );

  test('it takes at most 5 MB of a disk, with no source maps and no word of one', async () => {
    const entries = await readdir(installed('.'), { recursive: true, withFileTypes: true });
    const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
    const sizes = await Promise.all(files.map(async (file) => (await stat(file)).size));
    const bytes = sizes.reduce((sum, size) => sum + size, 0);
    expect(bytes).toBeGreaterThan(1e6);
    expect(bytes).toBeLessThanOrEqual(5e6);
    expect(files.filter((file) => file.endsWith('.map'))).toEqual([]);
    for (const file of files.filter((each) => /\.c?js$/.test(each)))
      expect(await readFile(file, 'utf8'), file).not.toContain('sourceMappingURL');
  });

  test('modules of Node are loaded by names that no package can have', async () => {
    const bare = new Set(builtinModules.filter((name) => !name.startsWith('node:')));
    for (const name of (await readdir(installed('dist'))).filter((each) => /\.c?js$/.test(each))) {
      const source = await readFile(installed(`dist/${name}`), 'utf8');
      const loaded = [
        ...source.matchAll(
          /^(?:import|export)\b[^'"\n]*["']([^"'\n]+)["'];?$|\b(?:require|import)\(["']([^"'\n]+)["']\)/gm,
        ),
      ];
      expect(
        loaded.map(([, from, called]) => from ?? called).filter((module) => bare.has(module as string)),
        name,
      ).toEqual([]);
      if (name === 'node.js') expect(loaded.some(([, from]) => from?.startsWith('node:') === true)).toBe(true);
    }
  });

  test('the ESM build imports tinyqueue, the CommonJS build contains it', async () => {
    expect(await readFile(installed('dist/index.js'), 'utf8')).toMatch(/from ["']tinyqueue["']/);
    expect(await readFile(installed('dist/index.cjs'), 'utf8')).not.toMatch(/require\(["']tinyqueue["']\)/);
  });
});

describe('programs', () => {
  const names = JSON.stringify(specifiers);

  test('import and require load every subpath with the same exports', async () => {
    const print = 'console.log(JSON.stringify(loaded.map((module) => Object.keys(module).sort())))';
    const esm = await runScript(
      'all.mjs',
      `const loaded = await Promise.all(${names}.map((name) => import(name)));\n${print}`,
    );
    const cjs = await runScript('all.cjs', `const loaded = ${names}.map((name) => require(name));\n${print}`);
    expect(JSON.parse(esm)).toEqual(JSON.parse(cjs));
    const isEmpty = (_: unknown, i: number): boolean => (JSON.parse(esm) as string[][])[i]?.length === 0;
    expect(specifiers.filter(isEmpty)).toEqual(['headgate/types']);
  });

  test('the command is installed, and reads files', async () => {
    const command = join(consumer, 'node_modules/.bin/headgate');
    expect(await run(command, '--version')).toBe(`${manifest.version}\n`);
    const file = join(consumer, 'gateway.yaml');
    await writeFile(file, 'listen: { port: 0 }\nupstreams: [{ id: a, url: "http://127.0.0.1:9" }]\n');
    expect(JSON.parse(await run(command, 'check', file, '--json'))).toMatchObject({ kind: 'gateway file', faults: [] });
  });

  test('an error of one format is an instance of the class of the other', async () => {
    const source = `
      import * as esm from 'headgate';
      import { createRequire } from 'node:module';
      const cjs = createRequire(import.meta.url)('headgate');
      const thrown = (library) => { try { new library.FlowController({ unknownOption: true }); } catch (error) { return error; } };
      console.log(esm.FlowConfigError !== cjs.FlowConfigError,
        thrown(cjs) instanceof esm.FlowConfigError, thrown(esm) instanceof cjs.FlowConfigError, new Error() instanceof esm.FlowConfigError);`;
    expect(await runScript('both.mjs', source)).toBe('true true true false\n');
  });

  test.each([
    ['client', 'retryingFetch({ unknownOption: true })'],
    ['node', 'flowControl(new FlowController({ maxConcurrency: 1 }), { unknownOption: true })'],
    ['redis', 'sharedMarks({}, { unknownOption: true })'],
    ['simulator', 'simulate({ unknownOption: true })'],
  ])('an error of headgate/%s is an instance of the class of the core', async (subpath, call) => {
    const source = `
      import { FlowConfigError, FlowController } from 'headgate';
      import { ${call.slice(0, call.indexOf('('))} } from 'headgate/${subpath}';
      try { ${call}; } catch (error) { console.log(error instanceof FlowConfigError, error.issues.length > 0); }`;
    expect(await runScript(`${subpath}-error.mjs`, source)).toBe('true true\n');
  });
});

describe('TypeScript', () => {
  /** Other subpaths and the command alone use them. */
  const undeclared = [
    ...['endpointPickerJsonSchema', 'loadSections', 'scenarioFileTable', 'withTraceFiles', 'count', 'rate', 'time'],
    ...['combinations', 'comparisonTable', 'distrust', 'failuresOf', 'findValue', 'formatFigure', 'heldTable'],
    ...['htmlReport', 'leftOut', 'parseConditions', 'parseMeasure', 'parseSweepAxis', 'resultTable', 'scenarioValue'],
    ...['spreadOf', 'withScenarioValue', 'withServedDefault', 'worstMiss'],
  ];
  const source = specifiers
    .map(
      (name, index) =>
        `import * as module${index} from '${name}';\nexport const names${index} = Object.keys(module${index});\n`,
    )
    .join('');

  test.each([
    { resolution: 'node16, from ESM', file: 'node16.mts', compilerOptions: { module: 'node16' } },
    { resolution: 'node16, from CommonJS', file: 'node16.cts', compilerOptions: { module: 'node16' } },
    { resolution: 'bundler', file: 'bundler.ts', compilerOptions: { module: 'esnext', moduleResolution: 'bundler' } },
  ])('the declarations of every subpath compile unskipped under $resolution', async ({ file, compilerOptions }) => {
    await expect(typecheck(file, source, { skipLibCheck: false, ...compilerOptions })).resolves.toBeUndefined();
  });

  test('the result of every function can be exported by a program with declarations of its own', async () => {
    const listing = `
      const functions = [];
      for (const from of ${JSON.stringify(specifiers)}) {
        for (const [name, value] of Object.entries(await import(from)))
          if (typeof value === 'function' && /^[a-z]/.test(name) && !${JSON.stringify(undeclared)}.includes(name))
            functions.push({ from, name });
      }
      console.log(JSON.stringify(functions));
    `;
    const functions = JSON.parse(await runScript('functions.mjs', listing)) as { from: string; name: string }[];
    expect(functions.length).toBeGreaterThan(120);
    const source = functions.map(
      ({ from, name }, i) =>
        `import { ${name} as made${i} } from '${from}';\nexport const result${i} = null! as ReturnType<typeof made${i}>;\n`,
    );
    const options = { declaration: true, module: 'nodenext', skipLibCheck: true };
    await expect(typecheck('results.mts', source.join(''), options)).resolves.toBeUndefined();
  });

  test('the core, the client and the middleware for Hono compile where only web types are known', async () => {
    const web = {
      lib: ['ES2022', 'ESNext.Disposable', 'DOM'],
      types: [],
      module: 'esnext',
      moduleResolution: 'bundler',
    };
    const source = ['', '/client', '/hono']
      .map((path, i) => `export * as module${i} from 'headgate${path}';\n`)
      .join('');
    await expect(typecheck('web.ts', source, { skipLibCheck: false, ...web })).resolves.toBeUndefined();
  });
});

describe('declarations', () => {
  const ofNode = ['node', 'express', 'koa', 'fastify', 'undici', 'ws', 'gateway', 'ext-proc'].map(
    (name) => `headgate/${name}`,
  );

  test('hold without Node’s types and without skipLibCheck, where the runtime need not be Node', async () => {
    const portable = specifiers.filter(
      (specifier) => !ofNode.includes(specifier) && specifier !== 'headgate/prometheus',
    );
    expect(portable.length).toBeGreaterThan(6);
    const source = portable.map((specifier) => `import '${specifier}';`).join('\n');
    const options = {
      module: 'NodeNext',
      moduleResolution: 'NodeNext',
      lib: ['ES2022', 'DOM', 'DOM.Iterable'],
      skipLibCheck: false,
      types: [],
    };
    await typecheck('portable.mts', source, { ...options, exactOptionalPropertyTypes: true });
    await typecheck('portable.cts', source, options);
  });
});

describe('what the playground prints', () => {
  const files = variants.map(([name, settings], index) => ({ name, settings, file: `playground-${index}` }));

  test('compiles in strict mode, for every scene, every policy and settings at random', async () => {
    for (const { settings, file } of files) await writeFile(join(consumer, `${file}.mts`), codeOf(settings));
    const all = files.map(({ file }) => `import './${file}.mjs';`).join('\n');
    await expect(
      typecheck('playground.mts', all, { module: 'NodeNext', moduleResolution: 'NodeNext', skipLibCheck: true }),
    ).resolves.toBeUndefined();
  });

  test('is a scenario, and from `plugins` on a gateway file, without faults and warnings', async () => {
    for (const { settings, file } of files) {
      const scenario = scenarioText(settings);
      const sections = scenario.slice(scenario.search(/^plugins:/m));
      await writeFile(join(consumer, `${file}-scenario.yaml`), scenario);
      await writeFile(
        join(consumer, `${file}.yaml`),
        `listen: { port: 0 }\nupstreams: [{ id: gpu-0, url: "http://gpu-0" }]\n${sections}`,
      );
    }
    const source = `
      import { readFileSync } from 'node:fs';
      import { loadGatewayConfig } from 'headgate/gateway';
      import { loadScenario } from 'headgate/simulator';
      const read = (name) => readFileSync(name, 'utf8');
      const names = ${JSON.stringify(files.map(({ file }) => file))};
      console.log(JSON.stringify(names.flatMap((name) => [
        ...loadScenario(read(name + '-scenario.yaml')).warnings, ...loadGatewayConfig(read(name + '.yaml')).warnings])));`;
    expect(JSON.parse(await runScript('playground.mjs', source))).toEqual([]);
    const command = join(consumer, 'node_modules/.bin/headgate');
    const everything = files.find(({ name }) => name === 'everything')?.file;
    expect(JSON.parse(await run(command, 'check', `${everything}.yaml`, '--json'))).toMatchObject({
      kind: 'gateway file',
      faults: [],
    });
    expect(await run(command, 'simulate', `${everything}-scenario.yaml`)).toContain('tenant');
  });
});
