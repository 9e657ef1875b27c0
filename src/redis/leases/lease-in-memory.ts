/** The lease script's form for one process, the same steps: see `lease-script.ts`. Long, because it is one step. */
import { type LocalTable, localTables } from '../store/local-table.js';
import type { Texts } from '../store/store.js';

const epoch = ['began', 'learnsUntil', 'drainEnd', 'forgetEnd', 'expected', 'called', 'joined'] as const;
const held = ['held', 'silent', 'uses', 'short', 'content', 'hungry', 'weight', 'live', 'waiting', 'ticket'] as const;
const others = ['known', 'joins', 'matched', 'nextEnd', 'lastEnd'] as const;
type SumField = (typeof epoch | typeof held | typeof others)[number];
/** What is known of a pool: its epoch, and the sums over its replicas. Ends are instants of the store, ms. */
export const sumFields: readonly SumField[] = [...epoch, ...held, ...others];

const ends = ['born', 'stage', 'leaseEnd', 'drainEnd', 'forgetEnd', 'ghostEnd', 'ghost', 'joins'] as const;
const said = ['sequence', 'weight', 'isNamed', 'hasRival', 'uses', 'wants', 'limit', 'safe'] as const;
const given = ['held', 'short', 'ticket', 'since', 'isHungry'] as const;
type ReplicaField = (typeof ends | typeof said | typeof given)[number];
/** What is known of a replica. `ghost` is what an earlier incarnation of its name may still run. */
export const replicaFields: readonly ReplicaField[] = [...ends, ...said, ...given];

const ofReplica = ['sequence', 'acknowledged', 'limit', 'weight', 'cap', 'inFlight', 'wants', 'safeInUse'] as const;
const ofAnswer = ['rememberedEpoch', 'rememberedWeight', 'rememberedBirth', 'most'] as const;
/** What a call tells of a lease, in this order. */
export const toldFields: readonly (typeof ofReplica | typeof ofAnswer)[number][] = [...ofReplica, ...ofAnswer];
export const spanFields = ['refresh', 'lease', 'drain', 'forget'] as const;

type Replica = Record<ReplicaField, number> & { id: string };
type Sums = Record<SumField, number>;
type Told = Readonly<Record<(typeof toldFields)[number], number>>;

function record<F extends string>(fields: readonly F[], numbers: readonly string[] = []): Record<F, number> {
  return Object.fromEntries(fields.map((field, at) => [field, Number(numbers[at] ?? 0)])) as Record<F, number>;
}

interface Pool {
  readonly replicas: Map<string, Replica>;
  /** How many of the live say which limit. */
  readonly limits: Map<number, number>;
  readonly sums: Sums;
}

/** The part of a call that is the same for all leases, and whether one of them was swept. */
interface Caller extends Readonly<Record<(typeof spanFields)[number], number>> {
  readonly now: number;
  readonly self: string;
  readonly id: string;
  readonly isNamed: number;
  readonly isLeaving: boolean;
  /** Nobody has anything of a pool that the memory does not know. */
  readonly isLasting: boolean;
  hasSwept: boolean;
}

const tables = localTables<Pool>();

export function leaseInMemory(table: object, keys: Texts, args: Texts, nowUs: number): string[] {
  const [self = '', id = '', isNamed, ...rest] = args;
  const spans = record(spanFields, rest);
  const [operation, ...told] = rest.slice(spanFields.length);
  const who = { now: Math.floor(nowUs / 1_000), self, id, isNamed: Number(isNamed), isLeaving: operation === 'leave' };
  const caller = { ...who, ...spans, isLasting: 'isLasting' in table, hasSwept: false };
  return keys.flatMap((key, index) => {
    const figures = told.slice(index * toldFields.length, (index + 1) * toldFields.length);
    return [id, ...visit(tables(table), key, caller, record(toldFields, figures), nowUs).map(String)];
  });
}

/** Adds what a live replica told to the sums, or takes it off (sign -1). What it holds is counted elsewhere. */
function count({ sums, limits }: Pool, r: Replica, sign: 1 | -1): void {
  sums.uses += sign * r.uses;
  sums.short += sign * r.short;
  sums.live += sign;
  sums.weight += sign * r.weight;
  if (r.isHungry === 1) sums.hungry += sign * r.weight;
  else sums.content += sign * r.wants;
  if (r.ticket > 0) sums.waiting += sign;
  const saying = (limits.get(r.limit) ?? 0) + sign;
  if (saying === 0) limits.delete(r.limit);
  else limits.set(r.limit, saying);
}

function hold({ sums }: Pool, r: Replica, held: number, ghost: number): void {
  const step = held + ghost - r.held - r.ghost;
  sums.held += step;
  if (r.stage > 0) sums.silent += step;
  else sums.uses += ghost - r.ghost;
  r.held = held;
  r.ghost = ghost;
}

function fallSilent(pool: Pool, r: Replica): void {
  count(pool, r, -1);
  pool.sums.silent += r.held + r.ghost;
  pool.sums.uses -= r.ghost;
  r.stage = 1;
  r.ticket = 0;
}

function comeBack(pool: Pool, r: Replica): void {
  if (r.stage === 0) return;
  pool.sums.silent -= r.held + r.ghost;
  pool.sums.uses += r.ghost;
  r.stage = 0;
  count(pool, r, 1);
}

function pass(pool: Pool, r: Replica, now: number): boolean {
  const { sums } = pool;
  if (r.ghost > 0 && now > r.ghostEnd) hold(pool, r, r.held, 0);
  if (r.stage === 0 && now > r.leaseEnd) fallSilent(pool, r);
  if (r.stage > 0 && now > r.drainEnd) {
    r.stage = 2;
    hold(pool, r, Math.min(r.held, r.safe), r.ghost);
    const first = Math.max(r.joins, sums.matched);
    if (r.isNamed === 0 && sums.joins > first) {
      sums.matched = first + 1;
      r.forgetEnd = 0;
    }
  }
  if (r.stage < 2 || now <= r.forgetEnd) return true;
  hold(pool, r, 0, 0);
  sums.known -= r.weight;
  return false;
}

function endOf(r: Replica, { now, lease }: Caller): number {
  let end = [r.leaseEnd, r.drainEnd, r.forgetEnd][r.stage] as number;
  if (r.stage === 2 && r.isNamed === 0) end = Math.min(end, now + lease);
  return r.ghost > 0 ? Math.min(end, r.ghostEnd) : end;
}

function sweep(pool: Pool, caller: Caller): void {
  const { sums, replicas } = pool;
  const due: { readonly name: string; readonly end: number; readonly r: Replica }[] = [];
  sums.nextEnd = caller.now + caller.lease;
  for (const [name, r] of replicas) {
    const end = endOf(r, caller);
    if (caller.now > end || (r.stage === 2 && r.isNamed === 0)) due.push({ name, end, r });
    else sums.nextEnd = Math.min(sums.nextEnd, end);
  }
  due.sort((a, b) => a.end - b.end || (a.name < b.name ? -1 : 1));
  for (const { name, r } of due) {
    if (pass(pool, r, caller.now)) sums.nextEnd = Math.min(sums.nextEnd, endOf(r, caller));
    else replicas.delete(name);
  }
}

function visit(table: LocalTable<Pool>, key: string, caller: Caller, told: Told, nowUs: number): number[] {
  const { now, self, id, isLeaving } = caller;
  const { sequence, acknowledged, limit, rememberedBirth } = told;
  let pool = table.get(key, nowUs);
  if (pool !== undefined && now > pool.sums.nextEnd && !caller.hasSwept) {
    caller.hasSwept = true;
    sweep(pool, caller);
  }
  let mine = pool?.replicas.get(self);
  const own = mine?.id === id ? mine : undefined;
  const began = pool?.sums.began ?? 0;
  if (own !== undefined && sequence <= own.sequence) return [own.sequence, -1, 0, began, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
  if (mine !== undefined && own === undefined && !isLeaving && rememberedBirth > 0 && rememberedBirth < mine.born) {
    mine.hasRival = 1;
    return [sequence, -1, 0, began, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0];
  }
  if (isLeaving && own === undefined && (mine !== undefined || told.inFlight === 0))
    return [sequence, 0, 0, began, 0, 1, limit, limit, 0, 0, 0, 0, 0, 0];
  const hasLost = !isLeaving && (own?.sequence ?? 0) < acknowledged;
  if (pool === undefined || (hasLost && now >= pool.sums.learnsUntil)) {
    pool = begin(caller, began);
    mine = undefined;
  }
  const learning = learn(pool.sums, caller, told, mine === undefined);
  mine = renew(pool, mine, caller, told);
  const figures = isLeaving ? leave(pool, mine, caller, told, learning) : share(pool, mine, caller, told, learning);
  const { sums, replicas } = pool;
  const lack = sums.short;
  if (mine.stage === 0) count(pool, mine, 1);
  sums.nextEnd = Math.min(sums.nextEnd, endOf(mine, caller));
  replicas.set(self, mine);
  sums.lastEnd = Math.max(sums.lastEnd, mine.forgetEnd + caller.lease);
  table.set(key, pool, sums.lastEnd * 1_000, nowUs);
  const { grant, safe, smallest, largest, kept, target } = figures;
  const known = [Math.max(1, sums.live), smallest, largest, sums.held + kept, target, sums.known + learning.absent];
  return [sequence, grant, safe, sums.began, Number(learning.isLearning), ...known, mine.born, mine.hasRival, lack];
}

function begin({ now, refresh, lease, drain, forget, isLasting }: Caller, before: number): Pool {
  const sums = record(sumFields);
  sums.began = Math.max(now, before + 1);
  sums.learnsUntil = isLasting ? now : now + refresh;
  sums.nextEnd = now + lease;
  sums.drainEnd = now + lease + drain;
  sums.forgetEnd = sums.drainEnd + forget;
  return { replicas: new Map(), limits: new Map(), sums };
}

type Figures = Readonly<Record<'grant' | 'safe' | 'smallest' | 'largest' | 'kept' | 'target', number>>;

type Learning = { readonly isLearning: boolean; readonly absent: number };

function learn(sums: Sums, { now, lease, isLeaving }: Caller, told: Told, isNew: boolean): Learning {
  const { weight, rememberedEpoch, rememberedWeight } = told;
  if (rememberedEpoch > 0 && rememberedEpoch !== sums.began) {
    sums.expected = Math.max(sums.expected, rememberedWeight);
    sums.learnsUntil = Math.max(sums.learnsUntil, sums.began + lease);
    if (isNew) sums.called += weight;
  } else if (isNew && !isLeaving) sums.joined += weight;
  const absent = now <= sums.forgetEnd ? Math.max(0, sums.expected - sums.called) : 0;
  const isLearning = now < sums.learnsUntil || (absent > 0 && now <= sums.drainEnd);
  return { isLearning, absent: isLearning ? absent : Math.max(0, absent - sums.joined) };
}

/** The caller's replica, with its new ends, out of the sums, and without what it held. */
function renew(pool: Pool, before: Replica | undefined, caller: Caller, told: Told): Replica {
  const { sums } = pool;
  const { now, id, isNamed, isLeaving, lease, drain, forget } = caller;
  const { sequence, limit, weight } = told;
  const mine = before ?? { ...record(replicaFields), born: now, isNamed, id };
  const wasOver = mine.stage === 2;
  if (before === undefined) sums.joins += isLeaving ? 0 : 1 - isNamed;
  else {
    comeBack(pool, mine);
    count(pool, mine, -1);
  }
  if (mine.id !== id) {
    if (!wasOver) mine.ghostEnd = Math.max(mine.ghostEnd, now + drain, mine.leaseEnd);
    hold(pool, mine, 0, mine.ghost + (wasOver ? 0 : mine.held));
    Object.assign(mine, { id, born: Math.max(now, mine.born + 1), ticket: 0, since: 0, hasRival: 0 });
  }
  sums.known += weight - mine.weight;
  const ends = { leaseEnd: now + lease, drainEnd: now + lease + drain, forgetEnd: now + lease + drain + forget };
  Object.assign(mine, { sequence, weight, limit, joins: sums.joins, ...ends });
  hold(pool, mine, 0, mine.ghost);
  return mine;
}

/** The smallest and the largest limit, what is kept for absent weight, and as yet no grant. */
function figuresOf({ sums, limits }: Pool, limit: number, { isLearning, absent }: Learning): Figures {
  const all = [limit, ...limits.keys()];
  const smallest = Math.min(...all);
  const kept = absent > 0 && !isLearning ? Math.ceil((smallest * absent) / sums.expected) : 0;
  return { grant: 0, safe: 0, smallest, largest: Math.max(...all), kept, target: 0 };
}

function leave(pool: Pool, mine: Replica, { now, drain }: Caller, told: Told, learning: Learning): Figures {
  const { sums } = pool;
  const { limit, inFlight } = told;
  const forgetEnd = Math.max(mine.ghostEnd, now + drain);
  if (inFlight > 0) mine.ghostEnd = forgetEnd;
  hold(pool, mine, 0, mine.ghost + inFlight);
  Object.assign(mine, { stage: 2, isNamed: 1, safe: 0, forgetEnd });
  sums.silent += mine.ghost;
  sums.uses -= mine.ghost;
  if (mine.ghost === 0) {
    sums.known -= mine.weight;
    mine.weight = 0;
  }
  return figuresOf(pool, limit, learning);
}

function share(pool: Pool, mine: Replica, { now, lease }: Caller, told: Told, learning: Learning): Figures {
  const { sums } = pool;
  const { limit, weight, cap, inFlight, wants, safeInUse, most } = told;
  const figures = figuresOf(pool, limit, learning);
  const { smallest, kept } = figures;
  const free = smallest - sums.held - kept;
  const room = smallest - sums.silent - kept;
  const left = room - sums.uses - sums.short;
  let wanted = Math.min(wants, smallest, most);
  if (wanted === 0 && 10 * sums.live <= smallest) wanted = 1;
  const fair = Math.max(0, Math.floor(((room - sums.content) * weight) / (sums.hungry + weight)));
  let part = Math.max(0, Math.min(wanted, fair) - mine.ghost);
  if (part === 0 && wanted > 0) {
    const place = sums.waiting + 1 + (mine.ticket > 0 ? mine.ticket - sums.ticket : 0);
    if (place <= free || (mine.since > 0 && now < mine.since + 2 * lease)) part = 1;
  }
  let target = Math.max(part, Math.min(wanted, left));
  if (wanted <= fair && sums.hungry === 0 && sums.short === 0) {
    let spare = Math.floor(((room - sums.content - wanted) * weight) / (sums.weight + weight));
    if (sums.uses >= sums.content + spare * sums.live) spare++;
    target = Math.max(target, Math.min(wanted + spare, smallest, most));
  }
  const grant = Math.max(0, Math.min(learning.isLearning ? cap : target, free));
  const safe = Math.min(grant, Math.floor((smallest * weight) / (sums.weight + weight)));
  const uses = Math.max(grant, inFlight);
  const short = Math.max(0, Math.min(wanted, Math.max(part, 1)) - uses);
  const isHungry = Number(wanted > fair);
  Object.assign(mine, { wants: wanted, isHungry, safe: Math.max(safe, safeInUse), uses, short });
  if (grant > 0 || wanted <= inFlight) mine.ticket = 0;
  else if (mine.ticket === 0) mine.ticket = ++sums.ticket;
  mine.since = grant > 0 ? mine.since || now : 0;
  hold(pool, mine, Math.max(grant, cap, inFlight), mine.ghost);
  return { ...figures, grant, safe, target };
}
