/** `headgate check`, `--help` and `--version`, as a process. */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import manifest from '../../../package.json' with { type: 'json' };
import { checkSource } from '../../../src/gateway/cli/check-source.js';
import { loadGatewayConfig } from '../../../src/gateway/index.js';
import { bundleCli, type Ended } from '../support/bundled-cli.js';

let cli: Awaited<ReturnType<typeof bundleCli>>;
beforeAll(async () => {
  cli = await bundleCli();
  writeFileSync(`${cli.folder}/package.json`, JSON.stringify({ version: manifest.version }));
});
afterAll(() => cli.remove());

const run = (...args: string[]): Promise<Ended> => cli.start(args).ended;
const root = fileURLToPath(new URL('../../../', import.meta.url));

const odd = `
listen: { host: 0.0.0.0, port: 8080 }
upstreams:
- { id: a, url: "http://a", labels: { model: llama } }
- { id: b, url: "http://b", labels: { model: qwen } }
scrape: { interval: 300ms }
timeouts: { firstByte: 2h }
drain: { waiting: 30s, streams: 60s }
objectives: { gold: 50 }
auth: { anonymous: { tenant: guest, objective: gold, trusted: true } }
models: { aliases: { gpt: mistral } }
limits: { maxRequestBytes: 2Gi }
plugins:
- { type: utilization-detector }
- { type: utilisation-detector, name: other }
- { type: label-filter, parameters: { label: zone } }
flowControl:
  maxRequests: 100
  defaultRequestTTL: 20m
  enableEviction: true
  priorityBands: [{ priority: 100, maxRequests: 500 }, { priority: 0, maxRequests: 50 }]
`;

/** Where a line ends depends on how long the file's path is. */
const onOneLine = (text: string): string => text.replace(/\s+/g, ' ');

describe('check', () => {
  it('finds the example right, and says what it comes to', async () => {
    const { status, stdout } = await run('check', `${root}examples/gateway.yaml`);
    expect(status).toBe(0);
    expect(onOneLine(stdout)).toContain('gateway file, no faults');
    expect(stdout).toMatch(/saturation detector +utilization-detector/);
    expect(stdout).toMatch(/^ {2}100 +500 requests, 512 MiB; waits 1 min;/m);
  });

  it('reads an EndpointPickerConfig as well', async () => {
    const { status, stdout } = await run('check', `${root}examples/gateway/gateway.yaml`);
    expect([status, onOneLine(stdout)]).toEqual([0, expect.stringContaining('EndpointPickerConfig, no faults')]);
  });

  it('ends with 1 and lists every fault, for people and for programs', async () => {
    const path = `${cli.folder}/bad.yaml`;
    writeFileSync(path, 'listen: { prt: 1 }\nupstreams: [{ id: a, url: foo }]\nflowControl: { maxBytes: 10GB }\n');
    const people = await run('check', path);
    expect(people.status).toBe(1);
    expect(onOneLine(people.stdout)).toContain('with 4 faults');
    const programs = await run('check', path, '--json');
    expect(programs.status).toBe(1);
    const { faults } = JSON.parse(programs.stdout) as { faults: { path: string }[] };
    expect(faults.map((fault) => fault.path)).toEqual([
      'listen.port',
      'listen.prt',
      'upstreams[0].url',
      'flowControl.maxBytes',
    ]);
  });

  it('fits into 80 columns', async () => {
    const path = `${cli.folder}/odd.yaml`;
    writeFileSync(path, odd);
    const { stdout } = await run('check', path);
    const tooLong = stdout.split('\n').filter((line) => line.length > 80 && !line.startsWith(path.slice(0, 20)));
    expect(tooLong).toEqual([]);
  });

  it('ends with 1 for a file that is not there', async () => {
    const { status, stdout } = await run('check', `${cli.folder}/none.yaml`);
    expect([status, stdout]).toEqual([1, expect.stringContaining('ENOENT')]);
  });

  it('warns that what is set for a tenant does not hold for its families', () => {
    const file = (flows: string): string => `families: true
upstreams: [{ id: a, url: "http://10.0.0.1:8000" }]
listen: { port: 8080 }
flowControl: { ${flows} }
`;
    const warning = 'families is on: what the file sets for single tenants does not hold';
    expect(checkSource(file('flows: { acme: { maxInFlight: 2 } }')).warnings.join()).toContain(warning);
    expect(checkSource(file('')).warnings.join()).not.toContain(warning);
  });

  it.each([
    'band 100 may hold 500 requests, but all bands together only 100 (maxRequests)',
    'band 100 lets requests wait 20 min',
    'objective gold has priority 50, for which there is no band',
    'tenant guest has priority 50, for which there is no band',
    'enableEviction is on, but no priority is negative',
    'plugins of types unknown to headgate are ignored: utilisation-detector (did you mean "utilization-detector"?)',
    'scrape.interval is 300 ms, but metrics are stale after 200ms',
    'label-filter looks at the label "zone", which no upstream has',
    'models.aliases.gpt leads to "mistral", which no upstream has',
    'everybody who reaches 0.0.0.0 may send requests',
    'everybody who reaches 0.0.0.0 may read /metrics',
    'auth.anonymous is trusted',
    'timeouts.firstByte (120 min) is longer than timeouts.total (30 min)',
    'drain takes up to 93 s',
    'a request may have 2 GiB (limits.maxRequestBytes), more than may wait in band 100',
  ])('warns: %s', (warning) => {
    const { faults, warnings } = checkSource(odd);
    expect(faults).toEqual([]);
    expect(warnings.join('\n')).toContain(warning);
  });

  it('warns of queues in servers that are deep, where there are several priorities', () => {
    const documentOf = (parameters: string, bands: string): string =>
      `apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\nfeatureGates: [flowControl]\nplugins: [{ type: utilization-detector${parameters} }]\nflowControl: { priorityBands: [${bands}] }\n`;
    const both = '{ priority: 100 }, { priority: 0 }';
    const warningsOf = (text: string): string => checkSource(text).warnings.join('\n');
    expect(warningsOf(documentOf('', both))).toContain(
      'queueDepthThreshold is 5: requests of high priority stand behind up to 5 others',
    );
    expect(warningsOf(documentOf(', parameters: { queueDepthThreshold: 2 }', both))).not.toContain(
      'queueDepthThreshold',
    );
    expect(warningsOf(documentOf('', '{ priority: 0 }'))).not.toContain('queueDepthThreshold');
    const file = `listen: { port: 1 }\nupstreams: [{ id: a, url: "http://a" }]\nflowControl: { priorityBands: [${both}] }\n`;
    expect(warningsOf(file)).not.toContain('queueDepthThreshold');
    const deep = 'plugins: [{ type: utilization-detector, parameters: { queueDepthThreshold: 4 } }]\n';
    expect(warningsOf(file + deep)).toContain('queueDepthThreshold is 4');
  });

  it('warns of an interval that lets metrics become stale, and of none that says how seldom an idle server is asked', () => {
    const file =
      'listen: { port: 1 }\nupstreams: [{ id: a, url: "http://a" }]\nscrape: { interval: 120ms, idleInterval: 5s }\nplugins:\n';
    const detector = '- { type: utilization-detector, parameters: { metricsStalenessThreshold: 100ms } }\n';
    const warnings = checkSource(file + detector).warnings.join('\n');
    expect(warnings).toContain('scrape.interval is 120 ms, but metrics are stale after 100ms');
    expect(warnings).not.toContain('idleInterval');
  });

  it('warns of nothing where there is nothing odd', () => {
    expect(checkSource(readFileSync(`${root}examples/gateway/gateway.yaml`, 'utf8')).warnings).toEqual([]);
    const blind = 'listen: { port: 1 }\nupstreams: [{ id: a, url: "http://a", metrics: none }]\n';
    expect(checkSource(blind).warnings.join()).toContain(
      'utilization-detector reads what servers report, but none is asked',
    );
  });
});

describe('a plugin type that is nearly right', () => {
  const file = (more: string): string => `listen: { port: 1 }
upstreams: [{ id: a, url: 'http://a' }]
plugins: [{ type: concurrency-detector }, { type: round-robin-fairness-polcy }]
saturationDetector: { pluginRef: concurrency-detector }
${more}`;
  const meant = 'round-robin-fairness-polcy (did you mean "round-robin-fairness-policy"?)';

  it('is named when the file is loaded, and once when it is checked', () => {
    expect(loadGatewayConfig(file('')).warnings).toEqual([
      `plugins of types unknown to headgate are ignored: ${meant}`,
    ]);
    expect(checkSource(file('')).warnings.filter((warning) => warning.includes('polcy'))).toHaveLength(1);
  });

  it('is named where something refers to it', () => {
    const { faults } = checkSource(
      file('flowControl: { defaultPriorityBand: { fairnessPolicyRef: round-robin-fairness-polcy } }'),
    );
    expect(faults).toHaveLength(1);
    expect(faults[0]?.expected).toContain('(did you mean "round-robin-fairness-policy"?)');
  });
});

describe('tenants', () => {
  const file = (more: string): string => `listen: { port: 1 }
upstreams: [{ id: a, url: 'http://a' }]
plugins: [{ type: concurrency-detector }]
saturationDetector: { pluginRef: concurrency-detector }
auth:
  keys:
  - { key: k1, tenant: acme, priority: 10 }
  - { key: k2, tenant: acme, priority: 10 }
  - { key: k3, tenant: nightly, priority: -10${more} }
flowControl:
  priorityBands: [{ priority: 10, minShare: 0.25 }, { priority: 5 }, { priority: -10, maxRequests: 50, maxInFlightPerFlow: 3 }]
  plans: { free: { maxInFlight: 4 }, team: { weight: 4, maxInFlight: { requests: 32, tokens: 200k } }, gold: {} }
  tenants: { acme: team, nigthly: team, '*': free }
  flows: { other: { weight: 2, limits: { maxRequests: 7 } } }
`;

  it('that no key has, plans that no tenant has, and bands for which nobody has the priority are warned of', () => {
    const { faults, warnings } = checkSource(file(''));
    expect(faults).toEqual([]);
    expect(warnings).toEqual([
      'no tenant has the plan gold (flowControl.tenants)',
      'nigthly has the plan team, but no key has it as tenant (did you mean "nightly"?)',
      'other has settings in flowControl.flows, but no key has it as tenant',
      'no sender has the priority 5: its band stays empty',
    ]);
  });

  it('may come from a sender that is trusted', () => {
    expect(checkSource(file(', trusted: true')).warnings).toEqual([
      'no tenant has the plan gold (flowControl.tenants)',
    ]);
  });

  it('are listed with their keys, priorities, plans and caps', () => {
    const { effective } = checkSource(file(''));
    expect(effective.find(({ section }) => section === 'Tenants')?.entries).toEqual([
      ['acme', '2 keys, priority 10; plan team; weight 4; runs at most 32 requests and 200000 tokens at a time'],
      ['nightly', '1 key, priority -10; plan free; weight 1; runs at most 4 requests at a time'],
      ['nigthly', 'no key; plan team; weight 4; runs at most 32 requests and 200000 tokens at a time'],
      ['other', 'no key; weight 2; 7 requests, any number of bytes may wait in each band'],
    ]);
    const bands = new Map(effective.find(({ section }) => section === 'Priority bands')?.entries);
    expect(bands.get('10')).toContain('gets at least 25% of the requests');
    expect(bands.get('-10')).toContain('each tenant runs at most 3 requests at a time');
  });

  it('are everybody where there are no keys', () => {
    const { effective } = checkSource("listen: { port: 1 }\nupstreams: [{ id: a, url: 'http://a' }]\n");
    expect(effective.find(({ section }) => section === 'Tenants')?.entries).toEqual([
      ['default-flow', 'comes without a key, priority 0'],
    ]);
  });
});

describe('the command', () => {
  it('explains itself', async () => {
    const { status, stdout } = await run('--help');
    expect([status, stdout]).toEqual([0, expect.stringContaining('headgate gateway --config FILE')]);
    expect((await run()).stdout).toBe(stdout);
  });

  it('tells its version', async () => {
    expect(await run('--version')).toMatchObject({ status: 0, stdout: `${manifest.version}\n` });
  });

  it.each([[['gatway']], [['gateway']], [['check']], [['check', 'a', 'b']], [['--unknown']]])(
    'refuses %j with 1',
    async (args) => {
      const { status, stderr } = await run(...args);
      expect([status, stderr]).toEqual([1, expect.stringContaining('headgate --help tells more')]);
    },
  );
});

describe('a backlog of sheddable requests that nothing holds room against', () => {
  const file = (more: string, maxRequests = 1000): string => `listen: { port: 0 }
upstreams: [{ id: a, url: 'http://127.0.0.1:1' }]
plugins: [{ type: concurrency-detector }, { type: priority-holdback-policy, parameters: { minCeiling: 0.4 } }]
saturationDetector: { pluginRef: concurrency-detector }
flowControl:
  priorityBands: [{ priority: 100 }, { priority: -10, maxRequests: ${maxRequests} }]
${more}`;
  const warned = (text: string): boolean =>
    checkSource(text).warnings.some((warning) => warning.startsWith('band -10 may fill the pool'));

  it('is warned of', () => {
    expect(warned(file(''))).toBe(true);
  });

  it('is not where room is held back, requests are evicted, or few may wait', () => {
    expect(warned(file('  usageLimitPolicyPluginRef: priority-holdback-policy'))).toBe(false);
    expect(warned(file('  enableEviction: true'))).toBe(false);
    expect(warned(file('', 50))).toBe(false);
  });
});
