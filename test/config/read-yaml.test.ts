/**
 * Files that are YAML and cannot be meant, through every way in: each is a FlowConfigError, never a crash, a hang or a
 * wrong reading.
 */
import { describe, expect, it } from 'vitest';
import { loadBlisPolicy, loadConfig } from '../../src/config/index.js';
import { checkSource } from '../../src/gateway/cli/check-source.js';
import { loadGatewayConfig } from '../../src/gateway/index.js';
import { FlowConfigError } from '../../src/index.js';
import { loadScenario } from '../../src/simulator/index.js';
import { cpuMsOf } from '../support/cpu-time.js';

const server = 'upstreams: [{ id: a, url: "http://a" }]\n';
const head = 'kind: EndpointPickerConfig\napiVersion: llm-d.ai/v1alpha1\n';

function bomb(key: string): string {
  const lines = [`a0: &a0 [x, x, x, x, x, x, x, x, x]`];
  for (let level = 1; level < 9; level++)
    lines.push(
      `a${level}: &a${level} [${Array(9)
        .fill(`*a${level - 1}`)
        .join(', ')}]`,
    );
  return `${lines.join('\n')}\n${key}: *a8\n`;
}

/** What the error says: `path: expected …; got …`. */
function issuesOf(load: () => unknown): string[] {
  try {
    load();
  } catch (error) {
    if (!(error instanceof FlowConfigError)) throw error;
    return error.issues.map(({ path, expected, got }) => `${path}: expected ${expected}; got ${got}`);
  }
  return [];
}

const loaders: readonly [name: string, head: string, issuesOf: (text: string) => string[]][] = [
  ['loadGatewayConfig', server, (text) => issuesOf(() => loadGatewayConfig(text))],
  [
    'headgate check of a gateway file',
    server,
    (text) => checkSource(text).faults.map(({ path, expected, got }) => `${path}: expected ${expected}; got ${got}`),
  ],
  ['loadConfig', head, (text) => issuesOf(() => loadConfig(text))],
  [
    'headgate check of an EndpointPickerConfig',
    head,
    (text) => checkSource(text).faults.map(({ path, expected, got }) => `${path}: expected ${expected}; got ${got}`),
  ],
  ['loadBlisPolicy', 'admission: { policy: reject-all }\n', (text) => issuesOf(() => loadBlisPolicy(text))],
];

describe.each(loaders)('%s', (name, start, problems) => {
  const line = start.split('\n').length;

  it('tells where an alias has no anchor', () => {
    expect(problems(`${start}listen: *x\n`)).toEqual([
      `line ${line}, column 9: expected an alias of an anchor that stands before it; got *x`,
    ]);
  });

  it('tells where a tag is unknown, and does not take its text for the value', () => {
    const expected = 'expected a value without a tag, or in quotes where it begins with "!"; got an unknown tag';
    expect(problems(`${start}admin: { token: !env SECRET }\nlisten: !secret\n`)).toEqual([
      `line ${line}, column 17: ${expected}`,
      `line ${line + 1}, column 9: ${expected}`,
    ]);
  });

  it('tells of a merge of something that is no map', () => {
    expect(problems(`${start}listen:\n  <<: 5\n`)).toEqual([
      'line 1, column 1: expected valid YAML; got Merge sources must be maps or map aliases',
    ]);
  });

  it('tells where a value contains itself', () => {
    const expected = 'a value that does not contain itself; got *a, inside of &a';
    expect(problems(`${start}listen: &a { host: *a }\n`)).toEqual([`line ${line}, column 20: expected ${expected}`]);
    expect(problems(`${start}objectives: &a [*a]\n`)).toEqual([`line ${line}, column 17: expected ${expected}`]);
    expect(problems(`${start}objectives: &a\n  <<: *a\n`)).toEqual([
      `line ${line + 1}, column 7: expected ${expected}`,
    ]);
  });

  it('does not expand aliases that multiply without bound', () => {
    let found: readonly string[] = [];
    const spentMs = cpuMsOf(() => {
      found = problems(start + bomb('labels'));
    });
    const [problem = '', ...others] = found;
    expect(problem).toMatch(/^line \d+, column \d+: expected aliases that stand for a file of reasonable size; got /);
    expect(others).toEqual([]);
    expect(spentMs).toBeLessThan(4000);
  });

  it('tells where lists and maps nest too deep, however deep', () => {
    for (const levels of [100, 1_600, 1_750, 20_000]) {
      const deep = [
        [`${'{ a: '.repeat(levels)}1${' }'.repeat(levels)}`, 5 * 99],
        [`${'['.repeat(levels)}${']'.repeat(levels)}`, 99],
        ['['.repeat(levels), 99],
      ] as const;
      for (const [value, offset] of deep) {
        const expected = `line ${line}, column ${9 + offset}: expected at most 100 levels of nesting; got more`;
        expect(problems(`${start}listen: ${value}\n`)).toEqual([expected]);
      }
      expect(problems(`${start}listen:\n  ${'- '.repeat(levels)}x\n`)).toEqual([
        `line ${line + 1}, column ${3 + 2 * 99}: expected at most 100 levels of nesting; got more`,
      ]);
    }
    const most = problems(`${start}listen: ${'['.repeat(99)}${']'.repeat(99)}\n`);
    expect(most.filter((problem) => problem.includes('levels'))).toEqual([]);
  });

  it('tells where aliases nest too deep', () => {
    const nested = (inner: string): string => `${'['.repeat(60)}${inner}${']'.repeat(60)}`;
    const text = `${start}first: &a ${nested('x')}\nsecond: ${nested('*a')}\n`;
    const found = problems(text).filter((problem) => problem.includes('levels'));
    expect(found).toEqual([
      expect.stringMatching(/second(\[0\]){60}: expected at most 100 levels of nesting; got more$/),
    ]);
  });

  it('tells where a key comes twice', () => {
    expect(problems(`${start}listen: { port: 1 }\nlisten: { port: 2 }\n`)).toEqual([
      `line ${line + 1}, column 1: expected valid YAML; got Map keys must be unique`,
    ]);
  });

  it('tells where a tab indents', () => {
    expect(problems(`${start}listen:\n\tport: 1\n`)[0]).toMatch(
      new RegExp(`^line ${line + 1}, column 1: expected valid YAML; got Tabs`),
    );
  });

  it('reads a file that begins with a byte order mark as one that does not', () => {
    expect(problems(`\uFEFF${start}listen: *x\n`)[0]).toMatch(new RegExp(`^line ${line}, column 9: `));
    expect(problems(`\uFEFF${start}`)).toEqual(problems(start));
  });

  if (name === 'loadConfig' || name.endsWith('EndpointPickerConfig')) {
    it('takes several documents', () => {
      expect(problems(`${start}---\nkind: Service\n`)).toEqual([]);
      expect(problems(`${start}---\nkind: Service\nspec: *x\n`)).toEqual([
        `line ${line + 2}, column 7: expected an alias of an anchor that stands before it; got *x`,
      ]);
    });
  } else {
    it('tells where a second document begins', () => {
      expect(problems(`${start}---\nlisten: { port: 1 }\n`)).toEqual([
        `line ${line + 1}, column 1: expected one document; got another one`,
      ]);
    });
  }
});

it('takes aliases and merge keys where they can be meant', () => {
  const { upstreams } = loadGatewayConfig(
    'listen: { port: 0 }\nupstreams:\n  - &first { id: a, url: "http://a", labels: { model: m } }\n  - { <<: *first, id: b }\n',
  );
  expect(upstreams.map(({ id, labels }) => [id, labels.model])).toEqual([
    ['a', 'm'],
    ['b', 'm'],
  ]);
});

it('tells where a scenario nests too deep', () => {
  for (const levels of [100, 1_650, 20_000]) {
    expect(issuesOf(() => loadScenario(`servers: ${'['.repeat(levels)}${']'.repeat(levels)}\n`))).toEqual([
      'line 1, column 109: expected at most 100 levels of nesting; got more',
    ]);
  }
});

describe('what was parsed elsewhere', () => {
  const upstreams: unknown[] = [];
  upstreams.push(upstreams);
  const listen: Record<string, unknown> = {};
  listen.host = listen;

  it('may not contain itself either in a gateway file or a policy bundle', () => {
    const expected = 'expected a value that does not contain itself';
    expect(issuesOf(() => loadGatewayConfig({ listen, upstreams }))).toEqual([
      `listen.host: ${expected}; got an object with keys host`,
      `upstreams[0]: ${expected}; got an array of 1`,
    ]);
    expect(issuesOf(() => loadBlisPolicy({ admission: listen }))).toEqual([
      `admission.host: ${expected}; got an object with keys host`,
    ]);
  });

  it('may contain itself in a document where nobody reads it', () => {
    const document = { kind: 'EndpointPickerConfig', apiVersion: 'llm-d.ai/v1alpha1', metadata: listen };
    expect(issuesOf(() => loadConfig(document))).toEqual([]);
    expect(issuesOf(() => loadConfig({ ...document, flowControl: listen }))[0]).toMatch(
      /^EndpointPickerConfig: flowControl\.host: expected one of/,
    );
  });

  it('may not nest deeper than 100 levels', () => {
    const nested = (levels: number): object => (levels === 1 ? [] : [nested(levels - 1)]);
    let deep: object = {};
    for (let level = 0; level < 100_000; level++) deep = { deep };
    const expected = 'expected at most 100 levels of nesting; got more';
    const path = `deep${'.deep'.repeat(98)}`;
    expect(issuesOf(() => loadGatewayConfig({ listen: deep, upstreams: [] }))).toEqual([`listen.${path}: ${expected}`]);
    expect(issuesOf(() => loadBlisPolicy({ admission: deep }))).toEqual([`admission.${path}: ${expected}`]);
    expect(issuesOf(() => loadScenario({ arrivals: deep }))).toEqual([`arrivals.${path}: ${expected}`]);
    const document = { kind: 'EndpointPickerConfig', apiVersion: 'llm-d.ai/v1alpha1' };
    expect(issuesOf(() => loadConfig({ ...document, metadata: deep }))).toEqual([
      `document 1: metadata.${path}: ${expected}`,
    ]);
    expect(issuesOf(() => loadConfig({ ...document, metadata: { labels: nested(98) } }))).toEqual([]);
    const shared = nested(60);
    const twice = { first: shared, second: nested(1), third: { shared, below: [[[[[[[[[[[shared]]]]]]]]]]] } };
    expect(issuesOf(() => loadConfig({ ...document, metadata: twice }))).toEqual([]);
    const doubled = nested(40);
    let bottom: unknown[] = doubled as unknown[];
    while (bottom.length > 0) bottom = bottom[0] as unknown[];
    bottom.push(shared);
    expect(issuesOf(() => loadConfig({ ...document, metadata: { shared, doubled } }))).toHaveLength(1);
  });

  it('may contain the same thing twice', () => {
    const labels = { model: 'm' };
    const file = { listen: { port: 0 }, upstreams: ['a', 'b'].map((id) => ({ id, url: 'http://a', labels })) };
    expect(loadGatewayConfig(file).upstreams).toHaveLength(2);
  });
});
