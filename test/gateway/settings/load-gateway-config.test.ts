import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { loadGatewayConfig } from '../../../src/gateway/index.js';
import { FlowConfigError } from '../../../src/index.js';

const minimal =
  'listen: { port: 8080 }\nupstreams: [{ id: a, url: "http://10.0.0.1:8000/" }]\nplugins: [{ type: concurrency-detector }]\n';
const detector = 'flowControl: { saturationDetector: { pluginRef: concurrency-detector } }\n';

function issuesOf(source: string | object, options: Parameters<typeof loadGatewayConfig>[1] = {}): string[] {
  try {
    loadGatewayConfig(source, options);
  } catch (error) {
    if (error instanceof FlowConfigError)
      return error.issues.map(({ path, expected, got }) => `${path}: ${expected}; ${got}`);
    throw error;
  }
  return [];
}

describe('a gateway file', () => {
  it('needs an address and servers, and has defaults for the rest', () => {
    const config = loadGatewayConfig(minimal + detector);
    expect(config.listen).toEqual({ host: '127.0.0.1', port: 8080 });
    expect(config.upstreams).toMatchObject([{ id: 'a', url: 'http://10.0.0.1:8000', weight: 1, labels: {} }]);
    expect(config.scrape).toBeUndefined();
    expect(config.families).toBe(false);
    expect(config.auth).toEqual({ keys: [], anonymous: { tenant: 'default-flow', priority: 0, trusted: false } });
    expect(config.flow.limits?.maxBytes).toBe(2 ** 30);
    expect(config.timeouts).toEqual({
      firstTokenByModel: {},
      connect: 5_000,
      upload: 10_000,
      firstByte: 300_000,
      idle: 60_000,
      total: 1_800_000,
      socket: 900_000,
    });
  });

  it('lets tenants take turns, and lets a full queue drop from the one with most waiting, unless it says otherwise', () => {
    const { flow, warnings } = loadGatewayConfig(minimal + detector);
    expect(flow).toMatchObject({
      overflow: 'fair',
      defaultBand: { fairness: { type: 'round-robin-fairness-policy' } },
    });
    expect(warnings).toEqual([]);
    const strict = { overflow: 'reject', defaultPriorityBand: { fairnessPolicyRef: 'global-strict-fairness-policy' } };
    const other = loadGatewayConfig({ listen: { port: 1 }, upstreams: [], flowControl: strict });
    expect(other.flow).toMatchObject({
      overflow: 'reject',
      defaultBand: { fairness: { type: 'global-strict-fairness-policy' } },
    });
  });

  it('is scraped for where the detector needs it, unless it says no', () => {
    expect(loadGatewayConfig('listen: { port: 1 }\nupstreams: []').scrape).toMatchObject({
      interval: 50,
      stalenessThreshold: 200,
    });
    expect(loadGatewayConfig('listen: { port: 1 }\nupstreams: []\nscrape: { enabled: false }').scrape).toBeUndefined();
    expect(loadGatewayConfig(`${minimal + detector}scrape: { interval: 1s }`).scrape?.interval).toBe(1_000);
  });

  it('tells every fault at once, of its own sections and of those of flow control', () => {
    const source = `
listen: { port: 99999 }
upstreams:
- { id: a, url: "ftp://x" }
- { id: a, url: "http://x/v1" }
auth: { keys: [{ key: { env: NONE }, tenant: "" }] }
timeouts: { idel: 5s, total: 0s }
plugins: [{ type: concurrency-detector, parameters: { maxConcurency: 1 } }]
flowControl: { maxBytes: 10GB }
`;
    const paths = issuesOf(source, { env: {} }).map((issue) => issue.split(': ')[0]);
    expect(paths.sort()).toEqual([
      'auth.keys[0].key',
      'auth.keys[0].tenant',
      'flowControl.maxBytes',
      'listen.port',
      'plugins[0].parameters.maxConcurency',
      'timeouts.idel',
      'timeouts.total',
      'upstreams[0].url',
      'upstreams[1].url',
    ]);
  });

  it('tells of names that come twice or lead nowhere, together with faults of flow control', () => {
    const source = {
      listen: { port: 1 },
      upstreams: [
        { id: 'a', url: 'http://x' },
        { id: 'a', url: 'http://y' },
      ],
      objectives: { premium: 1 },
      auth: {
        keys: [
          { key: 'sk-1', tenant: 'a', objective: 'premum' },
          { key: 'sk-1', tenant: 'b', objective: 'premium', priority: 2 },
        ],
      },
      flowControl: { maxBytes: -1 },
    };
    const issues = issuesOf(source);
    expect(issues).toHaveLength(5);
    expect(issues.join('\n')).toContain('(did you mean "premium"?)');
    expect(issues.join('\n')).toContain('upstreams[1].id: a name that no other upstream has');
    expect(issues.join('\n')).not.toContain('sk-1');
  });

  it('tells where its YAML is wrong', () => {
    expect(issuesOf('listen: [\n')[0]).toMatch(/^line \d+, column \d+: valid YAML; /);
    expect(issuesOf('just text')[0]).toContain('just text');
  });

  it('takes secrets from the file, the environment or a file, and never shows them', () => {
    const keys = [
      { key: 'sk-inline', tenant: 'a' },
      { key: { env: 'KEY' }, tenant: 'b' },
      { key: { file: '/run/key' }, tenant: 'c' },
    ];
    const file = { listen: { port: 1 }, upstreams: [], auth: { keys } };
    const config = loadGatewayConfig(file, { env: { KEY: 'sk-env' }, readFile: (path) => `${path}\n` });
    expect(config.auth.keys.map(({ key }) => key)).toEqual(['sk-inline', 'sk-env', '/run/key']);
    expect(issuesOf({ ...file, auth: { keys: [{ key: { env: 'a', file: 'b' }, tenant: 'sk' }] } })[0]).toContain(
      'a secret as text',
    );
  });

  it.each<[string, object]>([
    ['a key that is a number', { auth: { keys: [{ key: 31415926, tenant: 'a' }] } }],
    ['a key in a list', { auth: { keys: [{ key: ['sk-31415926'], tenant: 'a' }] } }],
    ['a key in a map', { auth: { keys: [{ key: { 'sk-31415926': null }, tenant: 'a' }] } }],
    ['a key in place of a sender', { auth: { keys: ['sk-31415926'] } }],
    ['keys in a map', { auth: { keys: { 'sk-31415926': { tenant: 'a' } } } }],
    ['a key in place of them all', { auth: 'sk-31415926' }],
    ['a token that is a number', { admin: { token: 31415926 } }],
    ['a token in place of its section', { admin: 'sk-31415926', demand: 'sk-31415926' }],
    ['a password that is a number', { inspector: { password: 31415926 } }],
    ['a password in place of its section', { inspector: 'sk-31415926' }],
    ['a key of a server that is a number', { upstreams: [{ id: 'a', url: 'http://a', apiKey: 31415926 }] }],
    ['a password in a URL', { upstreams: [{ id: 'a', url: 'http://me:31415926@a' }] }],
    ['a password in a URL of another protocol', { upstreams: [{ id: 'a', url: 'ftp://me:p@31415926@a/' }] }],
    ['a password in a URL without a protocol', { upstreams: [{ id: 'a', url: 'me:31415926@a' }] }],
    ['a name alone in a URL', { upstreams: [{ id: 'a', url: 'http://sk-31415926@a' }] }],
    ['a key in the query of a URL', { upstreams: [{ id: 'a', url: 'http://a/?key=sk-31415926' }] }],
    ['a password in a URL in place of a server', { upstreams: ['http://me:31415926@a'] }],
    ['a password in a URL in place of all servers', { upstreams: 'http://me:31415926@a?31415926' }],
    ['a password in a URL in place of its section', { sharedState: 'redis://me:31415926@a' }],
    ['a password in a URL that is an address', { listen: 'http://me:31415926@a' }],
  ])('never shows in its faults %s', (_what, wrong) => {
    const issues = issuesOf({ listen: { port: 1 }, upstreams: [], ...wrong });
    expect(issues.length).toBeGreaterThan(0);
    expect(issues.join('\n')).not.toContain('31415926');
  });

  it('reads plugins inside others, so that all detectors are known', () => {
    const config = loadGatewayConfig(`
listen: { port: 1 }
upstreams: []
plugins:
- { type: aimd-latency-detector, parameters: { targetMs: 500 } }
- { type: concurrency-detector }
- { type: max-saturation-detector, parameters: { detectors: [aimd-latency-detector, concurrency-detector] } }
flowControl: { saturationDetector: { pluginRef: max-saturation-detector } }
`);
    expect(config.detectors.map(({ type }) => type)).toContain('aimd-latency-detector');
  });
});

describe('examples/gateway.yaml', () => {
  it('is right, and says the defaults where it says that it does', () => {
    const text = readFileSync(new URL('../../../examples/gateway.yaml', import.meta.url), 'utf8');
    const whole = loadGatewayConfig(text, { env: {}, onMissing: () => {} });
    const bare = loadGatewayConfig({ listen: { port: 8080 }, upstreams: [] });
    expect(whole.warnings).toEqual([]);
    for (const section of [
      'listen',
      'scrape',
      'health',
      'timeouts',
      'limits',
      'retry',
      'drain',
      'log',
      'forwarded',
      'contract',
    ] as const) {
      expect([section, whole[section]]).toEqual([section, bare[section]]);
    }
  });
});
