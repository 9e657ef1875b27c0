/** The lease script's form for the memory of a process: the same steps in the same order, see `lease-script.ts`. */
import { type LocalTable, localTables } from '../store/local-table.js';

interface Replica {
  readonly id: string;
  held: number;
  wants: number;
  readonly sequence: number;
  readonly limit: number;
  readonly weight: number;
  safe: number;
  leaseEnd: number;
  drainEnd: number;
  forgetEnd: number;
  target: number;
}

interface Epoch {
  readonly began: number;
  readonly learnsUntil: number;
  readonly drainEnd: number;
  readonly forgetEnd: number;
  expected: number;
  called: number;
}

interface Pool {
  readonly replicas: Map<string, Replica>;
  epoch: Epoch | undefined;
}

const tables = localTables<Pool>();
const fixed = 5;
const perKey = 10;

export function leaseInMemory(
  memory: object,
  keys: readonly string[],
  args: readonly string[],
  nowUs: number,
): string[] {
  const table = tables(memory);
  return keys.flatMap((key, index) => {
    const from = fixed + index * perKey;
    return visit(table, key, args, args.slice(from, from + perKey).map(Number), nowUs, 'isLasting' in memory);
  });
}

/** What each wants, 1 at least, as far as the room goes by weight; the rest is spread by weight. */
function fill(room: number, live: Replica[]): void {
  const want = ({ wants, weight }: Replica): number => Math.max(wants, 1) / weight;
  live.sort((a, b) => want(a) - want(b) || (a.id < b.id ? -1 : 1));
  for (const replica of live) replica.target = 0;
  let rest = room;
  for (const isFirst of [true, false]) {
    let left = sumOf(live, ({ weight }) => weight);
    for (const replica of live) {
      const fair = Math.floor((rest * replica.weight) / left);
      const given = isFirst ? Math.min(Math.max(replica.wants, 1), fair) : fair;
      replica.target += given;
      rest -= given;
      left -= replica.weight;
    }
  }
}

/** A new one where there is none, and where writes were lost after the last one was learnt. */
function epochOf(
  known: Epoch | undefined,
  hasLost: boolean,
  now: number,
  begin: Omit<Epoch, 'began' | 'expected'>,
): Epoch {
  if (known !== undefined && !(hasLost && now >= known.learnsUntil)) return known;
  return { ...begin, began: Math.max(now, (known?.began ?? 0) + 1), expected: 0 };
}

function visit(
  table: LocalTable<Pool>,
  key: string,
  [self = '', ...common]: readonly string[],
  told: readonly number[],
  nowUs: number,
  isLasting: boolean,
): string[] {
  const now = Math.floor(nowUs / 1_000);
  const [lease = 0, drain = 0, forget = 0] = common.slice(0, 3).map(Number);
  const [sequence = 0, acknowledged = 0, ownLimit = 0, weight = 0, cap = 0, inFlight = 0, ...more] = told;
  const [wants = 0, safeInUse = 0, knownEpoch = 0, knownWeight = 0] = more;
  const ends = { leaseEnd: now + lease, drainEnd: now + lease + drain, forgetEnd: now + lease + drain + forget };
  const mine: Replica = { id: self, held: 0, wants, sequence, limit: ownLimit, weight, safe: 0, ...ends, target: 0 };
  const pool = table.get(key, nowUs) ?? { replicas: new Map<string, Replica>(), epoch: undefined };
  const { replicas } = pool;
  for (const [id, { forgetEnd }] of replicas) if (id !== self && now > forgetEnd) replicas.delete(id);
  const before = replicas.get(self);
  const others = [...replicas.values()].filter(({ id }) => id !== self);
  const live = [mine, ...others.filter(({ leaseEnd }) => now <= leaseEnd)];
  const otherWeight = sumOf(others, (other) => other.weight);
  if (before !== undefined && sequence <= before.sequence)
    return [self, ...[before.sequence, -1, 0, pool.epoch?.began ?? 0, 0, 0, 0, 0, 0, 0, 0].map(String)];
  const hasLost = acknowledged > 0 && (before?.sequence ?? 0) < acknowledged;
  const called = otherWeight + (before === undefined ? 0 : weight);
  const epoch = epochOf(pool.epoch, hasLost, now, { ...ends, learnsUntil: isLasting ? now : now + lease, called });
  pool.epoch = epoch;
  if (knownEpoch > 0 && knownEpoch !== epoch.began) {
    epoch.expected = Math.max(epoch.expected, knownWeight);
    if (before === undefined) epoch.called += weight;
  }
  const absent = now <= epoch.forgetEnd ? Math.max(0, epoch.expected - epoch.called) : 0;
  const isLearning = now < epoch.learnsUntil || (absent > 0 && now <= epoch.drainEnd);
  const holds = (other: Replica): number => (now <= other.drainEnd ? other.held : other.safe);
  const isSilent = (other: Replica): boolean => now > other.leaseEnd;
  const limits = live.map(({ limit }) => limit);
  const limit = Math.min(...limits);
  const kept = absent > 0 && !isLearning ? Math.ceil((limit * absent) / epoch.expected) : 0;
  let held = sumOf(others, holds) + kept;
  let grant = 0;
  let safe = 0;
  if (common[3] === 'leave') {
    Object.assign(mine, { wants: 0, held: inFlight, leaseEnd: now - 1, drainEnd: now + drain, forgetEnd: now + drain });
    if (inFlight === 0) replicas.delete(self);
    else replicas.set(self, mine);
  } else {
    fill(Math.max(0, limit - sumOf(others.filter(isSilent), holds) - kept), live);
    grant = Math.max(0, Math.min(mine.target, limit - held));
    if (isLearning) grant = Math.min(grant, cap);
    mine.held = Math.max(grant, cap, inFlight);
    safe = Math.min(grant, Math.floor((limit * weight) / sumOf(live, (replica) => replica.weight)));
    mine.safe = Math.max(safe, safeInUse);
    replicas.set(self, mine);
    held += mine.held;
  }
  const lastEnd = Math.max(ends.forgetEnd, ...others.map(({ forgetEnd }) => forgetEnd));
  table.set(key, pool, (lastEnd + 1) * 1_000, nowUs);
  const { began } = epoch;
  const largest = Math.max(...limits);
  const figures = [sequence, grant, safe, began, Number(isLearning), live.length, limit, largest, held, mine.target];
  return [self, ...[...figures, otherWeight + weight + absent].map(String)];
}

function sumOf(replicas: readonly Replica[], amountOf: (replica: Replica) => number): number {
  return replicas.reduce((sum, replica) => sum + amountOf(replica), 0);
}
