/** Each two of the optional parts of a controller, in force together while something of it is dispatched. */
import type { ResolvedOptions } from '../../src/core/options.js';
import { strictOrder } from '../../src/tiers/1-priority/band-order.js';

type Part = readonly [option: string, name: string, isInForce: (options: ResolvedOptions) => boolean];

const anyBand = (options: ResolvedOptions, has: (band: ResolvedOptions['defaultBand']) => boolean): boolean =>
  [...options.bands, options.defaultBand, options.defaultNegativeBand].some(has);

const parts: readonly Part[] = [
  ['overflow', 'displacement', ({ overflow }) => overflow === 'displace'],
  ['overflow', 'fair overflow', ({ overflow }) => overflow === 'fair'],
  ['bandOrder', 'an order of bands that ages or shares', ({ bandOrder }) => bandOrder !== strictOrder],
  ['holBlocking', 'flows that block alone', ({ holBlocking }) => holBlocking === 'flow'],
  ['holBlocking', 'requests that block nobody', ({ holBlocking }) => holBlocking === 'none'],
  ['eviction', 'eviction', ({ eviction }) => eviction !== undefined],
  ['admission', 'an admission policy', ({ admission }) => admission !== undefined],
  ['onDispatch', 'onDispatch', ({ onDispatch }) => onDispatch !== undefined],
  ['constraints', 'constraints', ({ constraints }) => constraints.length > 0],
  ['pool', 'a pool', ({ pool }) => pool !== undefined],
  ['endpointFilters', 'filters of endpoints', ({ endpointFilters }) => endpointFilters.length > 0],
  ['headroom', 'required headroom', ({ headroom }) => headroom === 'required'],
  ['gate', 'hysteresis', ({ gate }) => gate.openAt < gate.closeAt],
  ['maxDispatchesPerTurn', 'few dispatches in a turn', (options) => options.maxDispatchesPerTurn < 1_000],
  ['noEndpointRequestTtl', 'a time to live without endpoints', (options) => options.hasOwnNoEndpointTtl],
  ['maxLeaseMs', 'watched leases', ({ maxLeaseMs }) => Number.isFinite(maxLeaseMs)],
  ['traceLeases', 'traced leases', ({ traceLeases }) => traceLeases],
  ['flows', 'settings of flows', ({ flows }) => flows.size > 0],
  ['limits', 'global limits', ({ limits }) => Number.isFinite(limits.maxRequests)],
  ['minShare', 'shares of bands', (options) => anyBand(options, ({ minShare }) => minShare > 0)],
  ['flowLimits', 'limits of flows', (options) => anyBand(options, ({ flowLimits }) => flowLimits.maxRequests < 1e6)],
  ['caps', 'caps on flows', (options) => anyBand(options, (band) => band.maxInFlightPerFlow !== undefined)],
  ['groups', 'groups of endpoints', (options) => anyBand(options, ({ endpoints }) => endpoints !== undefined)],
  ['detector', 'a detector of a band', (options) => anyBand(options, (band) => band.saturationDetector !== undefined)],
];

const missing = new Map<string, readonly [Part, Part]>();
for (const [i, one] of parts.entries())
  for (const other of parts.slice(i + 1)) if (one[0] !== other[0]) missing.set(`${one[1]} × ${other[1]}`, [one, other]);
// A controller without a pool has nothing that these could be about.
const needsPool = ['endpointFilters', 'headroom', 'noEndpointRequestTtl', 'groups'];

/** Something was dispatched under these options. Each options object counts once. */
export const pairs = {
  all: missing.size,
  seen: new WeakSet<ResolvedOptions>(),
  dispatchedUnder(options: ResolvedOptions): void {
    if (missing.size === 0 || this.seen.has(options)) return;
    this.seen.add(options);
    const inForce = (part: Part): boolean =>
      part[2](options) && (options.pool !== undefined || !needsPool.includes(part[0]));
    for (const [name, [one, other]] of missing) if (inForce(one) && inForce(other)) missing.delete(name);
  },
  get never(): readonly string[] {
    return [...missing.keys()];
  },
};
