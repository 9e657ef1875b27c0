/** The settings as a host writes them in code: the same controller as the file's. */
import { prioritiesOf } from './scenario.ts';
import { quotasOf, type Settings } from './settings.ts';

const factories = {
  'round-robin-fairness-policy': 'roundRobin',
  'virtual-token-counter-fairness-policy': 'virtualTokenCounter',
  'global-strict-fairness-policy': 'globalStrict',
  'fcfs-ordering-policy': 'fcfs',
  'shortest-first-ordering-policy': 'shortestFirst',
  'edf-ordering-policy': 'edf',
} as const;

export function codeOf(settings: Settings): string {
  const { servers, queue, tenantQueue, ttl, ceiling, evicts } = settings;
  const [fairness, ordering] = [factories[settings.fairness], factories[settings.ordering]];
  const hasHoldback = ceiling < 100;
  const hasQuotas = quotasOf(settings).length > 0;
  const imports = [
    'concurrencyDetector',
    'EndpointPool',
    'FlowController',
    fairness,
    ordering,
    ...(hasHoldback ? ['priorityHoldback'] : []),
    ...(hasQuotas ? ['quotaDetector'] : []),
    ...(evicts ? ['inFlightEviction'] : []),
  ];
  const flowLimits = tenantQueue > 0 ? ` flowLimits: { maxRequests: ${tenantQueue} },` : '';
  const band = (priority: number): string =>
    `    { priority: ${priority}, limits: { maxRequests: ${queue} },${flowLimits} fairness: ${fairness}(), ordering: ${ordering}() },`;
  const lines = [
    `import { ${imports.sort((a, b) => a.localeCompare(b)).join(', ')} } from 'headgate';`,
    '',
    'const pool = new EndpointPool();',
    `for (const id of ${list(serverNames(servers))}) pool.add(id);`,
    '',
    'export const flow = new FlowController({',
    '  pool,',
    ...detectorLines(settings),
    `  limits: { maxRequests: ${queue}, maxBytes: '1G' },`,
    "  overflow: 'fair',",
    `  defaultRequestTtl: '${ttl}s',`,
    ...(hasHoldback ? [`  usageLimitPolicy: priorityHoldback({ minCeiling: ${ceiling / 100} }),`] : []),
    ...(evicts ? ['  eviction: inFlightEviction(),'] : []),
    '  bands: [',
    ...prioritiesOf(settings).map(band),
    '  ],',
    '});',
  ];
  return `${lines.join('\n')}\n`;
}

function detectorLines(settings: Settings): string[] {
  const seats = `concurrencyDetector({ maxConcurrency: ${settings.seats} })`;
  const quotas = quotasOf(settings).map(
    ({ unit, limit, burst }) => `{ unit: '${unit}', limit: ${limit}, burst: ${burst} }`,
  );
  if (quotas.length === 0) return [`  saturationDetector: ${seats},`];
  return [
    `  saturationDetector: ${seats},`,
    '  constraints: [',
    '    quotaDetector({',
    "      output: 'average', // reserved for an answer: what answers to the tenant were long lately",
    '      groups: [',
    '        {',
    '          quotas: [',
    ...quotas.map((quota) => `            ${quota}, // a minute`),
    '          ],',
    '        },',
    '      ],',
    '    }),',
    '  ],',
  ];
}

export function serverNames(servers: number): string[] {
  return servers === 1 ? ['gpu'] : Array.from({ length: servers }, (_, index) => `gpu-${index}`);
}

function list(names: readonly string[]): string {
  return `[${names.map((name) => `'${name}'`).join(', ')}]`;
}
