// The gateway's file while traffic runs. Eviction is always on. Every variant is gone through in turn; one of them is
// wrong, and must change nothing.

/** Who sends, and how important it is. */
export const senders = [
  { key: 'premium', tenant: 'premium', priority: 10 },
  { key: 'gold', tenant: 'gold', priority: 10 },
  ...['a', 'b', 'c', 'd'].map((tenant) => ({ key: `standard-${tenant}`, tenant, priority: 0 })),
  ...['x', 'y', 'z'].map((tenant) => ({ key: `batch-${tenant}`, tenant, priority: -10 })),
];

/** What every upload must keep to: the hostile ones do not. */
export const limits = { maxRequestBytes: 65_536, uploadMs: 1000 };

const plugins = [
  { type: 'concurrency-detector', parameters: { maxConcurrency: 3 } },
  { type: 'concurrency-detector', name: 'tokens', parameters: { concurrencyMode: 'tokens', maxTokenConcurrency: 300 } },
  { type: 'circuit-breaker-detector', parameters: { window: '1s', minCalls: 5, openFor: '200ms', maxOpenFor: '1s' } },
  { type: 'session-limit-detector', parameters: { maxSessions: 20, inactivity: '2s' } },
  {
    type: 'quota-detector',
    parameters: { groups: [{ name: 'all', quotas: [{ unit: 'requests', limit: 300, per: '1s' }] }], cooldown: '100ms' },
  },
  ...[
    ['with-breaker', ['concurrency-detector', 'circuit-breaker-detector']],
    ['with-quota', ['concurrency-detector', 'quota-detector', 'circuit-breaker-detector']],
    ['with-sessions', ['tokens', 'session-limit-detector']],
  ].map(([name, detectors]) => ({ type: 'max-saturation-detector', name, parameters: { detectors } })),
  { type: 'virtual-token-counter-fairness-policy' },
  { type: 'least-service-fairness-policy' },
  { type: 'deficit-round-robin-fairness-policy' },
  { type: 'global-strict-fairness-policy' },
  { type: 'round-robin-fairness-policy' },
  { type: 'prefix-ordering-policy' },
  { type: 'edf-ordering-policy' },
  { type: 'shortest-first-ordering-policy' },
  { type: 'fcfs-ordering-policy' },
];

const fair = (fairness, ordering) => ({ fairnessPolicyRef: fairness, orderingPolicyRef: ordering });

const variants = [
  { detector: 'concurrency-detector', band: fair('round-robin-fairness-policy', 'fcfs-ordering-policy') },
  {
    detector: 'with-breaker',
    band: fair('virtual-token-counter-fairness-policy', 'prefix-ordering-policy'),
    flow: { overflow: 'fair', maxRequests: 40, holBlocking: 'flow' },
  },
  {
    detector: 'with-sessions',
    band: fair('least-service-fairness-policy', 'edf-ordering-policy'),
    flow: { flows: { x: { maxInFlight: 1, weight: 2 }, a: { maxInFlight: 2 } } },
  },
  {
    detector: 'with-quota',
    band: fair('deficit-round-robin-fairness-policy', 'shortest-first-ordering-policy'),
    flow: { overflow: 'displace', maxRequests: 60, headroom: 'preferred' },
  },
  {
    detector: 'concurrency-detector',
    band: { ...fair('global-strict-fairness-policy', 'prefix-ordering-policy'), maxInFlightPerFlow: 2 },
    flow: { overflow: 'fair', maxRequests: 30, bandOrder: 'aging', bandPromotion: '100ms' },
  },
];

/** The file after `turn` reloads. `hidden`: the server that it leaves out for now. */
export function configurationFor(turn, servers, hidden) {
  const { detector, band, flow } = variants[turn % variants.length];
  return {
    listen: { host: '127.0.0.1', port: 0 },
    admin: { host: '127.0.0.1', port: 0 },
    upstreams: servers
      .filter((server) => server !== hidden)
      .map(({ id, url, labels }) => ({ id, url, labels, metrics: 'none', healthPath: '/health' })),
    scrape: { enabled: false },
    health: { interval: '200ms', timeout: '500ms' },
    timeouts: { connect: '500ms', upload: `${limits.uploadMs}ms`, firstToken: '2s', firstByte: '5s', idle: '2s' },
    limits: { maxRequestBytes: limits.maxRequestBytes, maxReadingBytes: 4_194_304 },
    retry: { max: 1, avoidFor: '200ms' },
    auth: { keys: senders },
    log: { requests: false, format: 'json' },
    plugins,
    flowControl: {
      saturationDetector: { pluginRef: detector },
      defaultPriorityBand: band,
      defaultRequestTTL: '2s',
      noEndpointRequestTTL: '500ms',
      enableEviction: true,
      maxRevocationsPerDecision: 2,
      evictionConfirmationTimeout: '1s',
      evictionReserve: '50ms',
      flowIdleTimeout: '5s',
      ...flow,
    },
  };
}
