/** The settings as a host writes them in code: the same controller as the file's. */
import { hasLedger, ledgerOf, prioritiesOf } from './scenario.ts';
import { lengthS, ofReplica, quotasOf, type Settings } from './settings.ts';

const factories = {
  'round-robin-fairness-policy': 'roundRobin',
  'virtual-token-counter-fairness-policy': 'virtualTokenCounter',
  'global-strict-fairness-policy': 'globalStrict',
  'fcfs-ordering-policy': 'fcfs',
  'shortest-first-ordering-policy': 'shortestFirst',
  'edf-ordering-policy': 'edf',
} as const;

export function codeOf(all: Settings): string {
  const settings = ofReplica(all);
  const { servers, queue, tenantQueue, ttl, ceiling, evicts, replicas, budget } = settings;
  const [fairness, ordering] = [factories[settings.fairness], factories[settings.ordering]];
  const hasHoldback = ceiling < 100;
  const isShared = replicas > 1;
  const imports = [
    'EndpointPool',
    'FlowController',
    fairness,
    ordering,
    ...(isShared ? [] : ['concurrencyDetector']),
    ...(hasHoldback ? ['priorityHoldback'] : []),
    ...(quotasOf(settings).length > 0 ? ['quotaDetector'] : []),
    ...(hasLedger(settings) ? ['capacityLedger'] : []),
    ...(evicts ? ['inFlightEviction'] : []),
  ];
  const flowLimits = tenantQueue > 0 ? ` flowLimits: { maxRequests: ${tenantQueue} },` : '';
  const band = (priority: number): string =>
    `    { priority: ${priority}, limits: { maxRequests: ${queue} },${flowLimits} fairness: ${fairness}(), ordering: ${ordering}() },`;
  const lines = [
    `import { ${imports.sort((a, b) => a.localeCompare(b)).join(', ')} } from 'headgate';`,
    ...(budget > 0 ? ["import { budgets } from 'headgate/budgets';"] : []),
    ...(isShared ? ["import { localStore, sharedEndpointConcurrency } from 'headgate/redis';"] : []),
    '',
    'const pool = new EndpointPool();',
    `for (const id of ${list(serverNames(servers))}) pool.add(id);`,
    ...(isShared ? sharedLines(settings) : []),
    '',
    'export const flow = new FlowController({',
    '  pool,',
    isShared
      ? '  saturationDetector: shared,'
      : `  saturationDetector: concurrencyDetector({ maxConcurrency: ${settings.seats} }),`,
    ...constraintLines(settings),
    "  headroom: 'required',",
    `  limits: { maxRequests: ${queue}, maxBytes: '1G' },`,
    "  overflow: 'fair',",
    `  defaultRequestTtl: '${ttl}s',`,
    ...(hasHoldback ? [`  usageLimitPolicy: priorityHoldback({ minCeiling: ${ceiling / 100} }),`] : []),
    ...(evicts ? ['  eviction: inFlightEviction(),'] : []),
    '  bands: [',
    ...prioritiesOf(settings).map(band),
    '  ],',
    '});',
    ...(isShared ? ['shared.attach(flow);'] : []),
  ];
  return `${lines.join('\n')}\n`;
}

function sharedLines({ replicas, seats }: Settings): string[] {
  return [
    '',
    `// One of ${replicas} replicas. For several processes it takes a client of Redis in place of localStore().`,
    `const shared = sharedEndpointConcurrency(localStore(), { pool: 'playground', maxConcurrency: ${seats}, drainDuration: '${lengthS}s' });`,
  ];
}

function constraintLines(settings: Settings): string[] {
  const quotas = quotasOf(settings).map(
    ({ unit, limit, burst }) => `            { unit: '${unit}', limit: ${limit}, burst: ${burst} }, // a minute`,
  );
  const ledger = Object.entries(ledgerOf(settings)).map(([name, tokens]) => `${name}: ${tokens}`);
  const constraints = [
    ...(quotas.length === 0
      ? []
      : [
          '    quotaDetector({',
          "      output: 'average', // reserved for an answer: what answers to the tenant were long lately",
          '      groups: [',
          '        {',
          '          quotas: [',
          ...quotas,
          '          ],',
          '        },',
          '      ],',
          '    }),',
        ]),
    ...(ledger.length === 0 ? [] : [`    capacityLedger({ ${ledger.join(', ')} }),`]),
    ...(settings.budget === 0
      ? []
      : [`    budgets({ budgets: [{ limits: [{ unit: 'tokens', limit: ${settings.budget} }] }] }), // a minute`]),
  ];
  return constraints.length === 0 ? [] : ['  constraints: [', ...constraints, '  ],'];
}

export function serverNames(servers: number): string[] {
  return servers === 1 ? ['gpu'] : Array.from({ length: servers }, (_, index) => `gpu-${index}`);
}

function list(names: readonly string[]): string {
  return `[${names.map((name) => `'${name}'`).join(', ')}]`;
}
