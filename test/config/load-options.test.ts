/** The options of what reads files: what is wrong with them is told as clearly as what is wrong with a file. */
import { expect, it } from 'vitest';
import { dynamoEnvironment, loadConfig } from '../../src/config/index.js';
import { importPlugins, loadGatewayConfig } from '../../src/gateway/index.js';
import { FlowConfigError } from '../../src/index.js';
import { loadScenario } from '../../src/simulator/index.js';

async function problemsOf(load: () => unknown): Promise<string[]> {
  try {
    await load();
  } catch (error) {
    if (!(error instanceof FlowConfigError)) throw error;
    return error.issues.map(({ path, expected, got }) => `${path}: expected ${expected}; got ${got}`);
  }
  return [];
}

const document = { apiVersion: 'llm-d.ai/v1alpha1', kind: 'EndpointPickerConfig' };

it.each<[string, (options: never) => unknown]>([
  ['loadConfig', (options) => loadConfig(document, options)],
  ['loadGatewayConfig', (options) => loadGatewayConfig({ upstreams: [{ id: 'a', url: 'http://a' }] }, options)],
  ['loadScenario', (options) => loadScenario('', options)],
  ['importPlugins', (options) => importPlugins({}, options)],
])('%s takes a registry and nothing else in its place', async (_name, load) => {
  const expected = 'expected a PluginRegistry, such as defaultRegistry()';
  expect(await problemsOf(() => load({ registry: 1 } as never))).toEqual([`registry: ${expected}; got 1 (number)`]);
  expect(await problemsOf(() => load({ registry: {} } as never))).toEqual([
    `registry: ${expected}; got an object with keys (none)`,
  ]);
  expect(await problemsOf(() => load({ regsitry: undefined } as never))).toEqual([
    expect.stringMatching(/^regsitry: expected .*did you mean "?registry"?.*; got an unknown key$/),
  ]);
  expect(await problemsOf(() => load(7 as never))).toEqual([': expected an object; got 7 (number)']);
});

it('loadConfig takes one of two words for what a silent file means', async () => {
  expect(await problemsOf(() => loadConfig(document, { defaults: 'hedgate' as never }))).toEqual([
    expect.stringMatching(
      /^defaults: expected one of .*llm-d.*headgate.*did you mean.*headgate.*; got "hedgate" \(string\)$/,
    ),
  ]);
});

it('loadGatewayConfig takes what secrets are read from', async () => {
  const options = { env: 'PATH', readFile: 'a', onMissing: true } as never;
  expect(await problemsOf(() => loadGatewayConfig('', options))).toEqual([
    'env: expected an object of variables, such as process.env; got "PATH" (string)',
    'readFile: expected a function; got "a" (string)',
    'onMissing: expected a function; got true (boolean)',
  ]);
});

it('loadScenario takes rows and a way to read files', async () => {
  const options = { readFile: 'a', rows: {}, skipBadLines: 'yes' } as never;
  expect(await problemsOf(() => loadScenario('', options))).toEqual([
    'readFile: expected a function; got "a" (string)',
    'rows: expected rows of a trace; got an object with keys (none)',
    expect.stringMatching(/^skipBadLines: expected .*; got "yes" \(string\)$/),
  ]);
});

it('importPlugins takes a folder and modules', async () => {
  expect(await problemsOf(() => importPlugins({}, { from: 1, modules: './a.mjs' } as never))).toEqual([
    expect.stringMatching(/^from: expected a folder.*; got 1 \(number\)$/),
    'modules: expected an array; got "./a.mjs" (string)',
  ]);
});

it('dynamoEnvironment knows two releases', async () => {
  expect(await problemsOf(() => dynamoEnvironment({}, { release: 'tcp-chanel' as never }))).toEqual([
    expect.stringMatching(/^release: expected one of .*did you mean.*tcp-channel.*; got "tcp-chanel" \(string\)$/),
  ]);
  expect(await problemsOf(() => dynamoEnvironment({}, { automaticLimit: 'many' as never }))).toHaveLength(1);
});
