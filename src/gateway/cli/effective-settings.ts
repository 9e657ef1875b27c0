/** The settings in effect, defaults included: heading, name and value, for people and as JSON. */
import type { resolveOptions } from '../../index.js';
import type { GatewayConfig } from '../index.js';
import { atATime, bytes, joined, ms, quantity } from './format-numbers.js';

export interface Effective {
  readonly section: string;
  readonly entries: readonly (readonly [name: string, value: string])[];
}

export type Resolved = ReturnType<typeof resolveOptions>;
type Band = Resolved['defaultBand'];

export function effectiveFlow(options: Resolved): Effective[] {
  const { limits, endpointFilters, admission, eviction, mode, minShareUnit } = options;
  const ofBand = ({ limits: own, requestTtlMs, fairness, ordering, minShare, ...band }: Band): string =>
    joined('; ', [
      `${quantity(own.maxRequests)} requests, ${bytes(own.maxBytes)}`,
      `waits ${ms(requestTtlMs)}`,
      `${fairness.type}, ${ordering.type}`,
      band.maxInFlightPerFlow && `each tenant ${atATime(band.maxInFlightPerFlow)}`,
      minShare > 0 && `gets at least ${Number((minShare * 100).toFixed(2))}% of the ${minShareUnit}`,
      band.endpoints?.map(({ group, afterMs }) => group + (afterMs > 0 ? ` after ${ms(afterMs)}` : '')).join(', then '),
    ]);
  const entries = {
    mode: typeof mode === 'object' ? mode.type : mode,
    'saturation detector': options.saturationDetector.type,
    'usage limit policy': options.usageLimitPolicy.type,
    'endpoint picker': options.endpointPicker.type,
    'endpoint filters': endpointFilters.map(({ type }) => type).join(', ') || 'none',
    'admission policy': admission?.type ?? 'none',
    eviction: eviction === undefined ? 'off' : `${eviction.filter.type}, ${eviction.ordering.type}`,
    overflow: options.overflow,
    'may wait in all': `${quantity(limits.maxRequests)} requests, ${bytes(limits.maxBytes)}`,
    'without endpoints': options.hasOwnNoEndpointTtl
      ? `waits ${ms(options.noEndpointRequestTtlMs)}`
      : 'waits its TTL, 5 s at most while no server was ever ready',
  };
  const bands = options.bands.map((band) => [String(band.priority), ofBand(band)] as const);
  const templates = { 'any other': options.defaultBand, 'other negative': options.defaultNegativeBand };
  const others = Object.entries(templates).map(([name, band]) => [name, ofBand(band)] as const);
  return [
    { section: 'Flow control', entries: Object.entries(entries) },
    { section: 'Priority bands', entries: [...bands, ...others] },
  ];
}

export function effectiveGateway(config: GatewayConfig): Effective[] {
  const { listen, admin, timeouts, limits, retry, drain, scrape, auth, upstreams } = config;
  const { host, port } = admin.listen ?? listen;
  const { anonymous } = auth;
  const entries = {
    'listens on': `${listen.host}:${listen.port}`,
    'operators ask': `${host}:${port}`,
    'API keys': auth.keys.length === 0 ? 'none' : String(auth.keys.length),
    'without a key':
      anonymous === undefined ? 'rejected with 401' : `tenant ${anonymous.tenant}, priority ${anonymous.priority}`,
    'largest request': bytes(limits.maxRequestBytes),
    timeouts: joined(', ', [
      `connect ${ms(timeouts.connect)}`,
      timeouts.firstToken !== undefined && `first token ${ms(timeouts.firstToken)}`,
      `first byte ${ms(timeouts.firstByte)}, idle ${ms(timeouts.idle)}, total ${ms(timeouts.total)}`,
    ]),
    'retry elsewhere': retry.enabled
      ? `${retry.max === 1 ? 'once' : `${retry.max} times`}, bodies up to ${bytes(retry.maxBodyBytes)}`
      : 'never',
    scraping: scrape
      ? `every ${ms(scrape.interval)}, while idle every ${ms(scrape.idleInterval)}, stale after ${ms(scrape.stalenessThreshold)}`
      : 'off',
    'on SIGTERM': `is not ready for ${ms(drain.delay)}, then dispatches for ${ms(drain.waiting)}, then lets streams end for ${ms(drain.streams)}`,
    'error contract': config.contract,
    ...(config.bandHeadroom && { 'answers tell': 'the room left in the band' }),
    'shared by replicas': sharedBy(config),
  };
  const servers = upstreams.map(({ id, url, labels, weight }) => {
    const named = Object.entries(labels).map(([name, value]) => `${name}=${value}`);
    return [id, joined(' ', [url, weight !== 1 && `weight ${weight}`, ...named])] as const;
  });
  return [
    { section: 'Gateway', entries: Object.entries(entries) },
    { section: 'Upstreams', entries: servers },
  ];
}

/** The settings of all replicas together, and those of each. Nothing secret. */
function sharedBy({ sharedState }: GatewayConfig): string {
  if (sharedState === undefined) return 'nothing: every limit is that of one replica';
  const { limits, limit, leases, quotas, store } = sharedState;
  const what = {
    maxConcurrency: 'requests in flight',
    maxTokens: 'tokens in flight',
    endpointConcurrency: 'requests in flight per upstream',
  };
  const { pool, fallback = 'safe', leaseDuration = 5_000 } = leases;
  const after = ms(Number(leaseDuration));
  const limited =
    limits === undefined
      ? `pool "${pool}"`
      : `${limit} ${what[limits]}, as pool "${pool}"; after ${after} without the store: ${fallback}`;
  const drawn = quotas ? '. Quotas of quota-detector (gcra windows)' : '';
  const nodes = store.nodes.map(({ host, port }) => `${host}:${port}`).join(', ');
  const at = `${store.kind} ${nodes}${store.tls === undefined ? '' : ' with TLS'}`;
  return `${limited}${drawn}, at ${at}. Queues, budgets and other limits are those of one replica`;
}
