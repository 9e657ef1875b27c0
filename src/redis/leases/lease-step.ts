/**
 * The protocol of capacity leases, the store's side: what one call of a replica does to one limit, and its answer.
 *
 * Invariant: no call makes the sum of `held` rise above the limit. So a replica that uses its grant, or the cap that it
 * reported, keeps the pool below its limit. `held` covers both, because the reply that carries the grant may be lost.
 *
 * A call costs the same for any number of replicas: it corrects sums by its own figures. The fair part follows from two
 * of them: what those want who want less than it, and the weight of the rest; who belongs to which is known from their
 * last calls. Source: A. Charny, D. Clark, R. Jain, "Congestion control with explicit rate indication" (1995). What
 * nobody lacks goes to whoever asks. A replica gives back what it has beyond its part when another lacks some of its
 * own. Where fewer seats than replicas are left, they take turns of two leases; who has waited longest is next.
 *
 * A new incarnation of a name gets the name's part, less what the last one may still run. A replica without a name
 * takes the place of one without a name that fell silent before it came.
 *
 * A store that has lost what it knew begins an epoch, and learns it from the replicas' calls: nobody's share grows
 * for one lease, or for one refresh where nobody remembers the pool. The first to call tell how much weight it had.
 * Weight that has not called again by then is absent, and may still run requests. No share grows until its drain is
 * over. After that its fair part is kept for it, unless as many have joined.
 *
 * The one source of both forms: `scripts/build-store-scripts.mjs` makes Lua of it, for which this file is plain enough.
 * Longer than most files, because it is one step.
 */

const epoch = ['began', 'learnsUntil', 'drainEnd', 'forgetEnd', 'expected', 'called', 'joined'] as const;
const held = ['held', 'silent', 'uses', 'short', 'content', 'hungry', 'weight', 'live', 'waiting', 'ticket'] as const;
const others = ['known', 'joins', 'matched', 'nextEnd', 'lastEnd', 'last', 'ahead'] as const;
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

/** `limits`: how many of the live say which limit. */
export type Sums = Record<SumField, number> & { readonly limits: Record<number, number> };
export type Replica = Record<ReplicaField, number> & { id: string };
export type Told = Readonly<Record<(typeof toldFields)[number], number>>;

/** The part of a call that is the same for all leases. */
export interface Caller extends Readonly<Record<(typeof spanFields)[number], number>> {
  /** The store's clock, ms. */
  readonly clock: number;
  /** Where that was set back, time goes on from the last call. */
  now: number;
  readonly self: string;
  readonly id: string;
  readonly isNamed: number;
  readonly isLeaving: boolean;
  /** Nobody has anything of a pool that the memory does not know. */
  readonly isLasting: boolean;
  /** One limit in each call, so that no call takes long. */
  hasSwept: boolean;
}

type Due = Readonly<{ name: string; r: Replica; ending: number }>;

/** Where it is kept, by key. What is read may be changed, and is written then. */
export interface LeaseMemory {
  open(key: string, name: string): { sums: Sums | undefined; mine: Replica | undefined };
  replicas(key: string): { name: string; r: Replica }[];
  write(key: string, name: string, r: Replica): void;
  remove(key: string, name: string): void;
  /** A pool of which nothing is known, in place of the old one; the sums are 0. */
  begin(key: string): Sums;
  newReplica(id: string): Replica;
  /** The sums, and a replica; until `sums.lastEnd`, which `isLater` than before. */
  save(key: string, sums: Sums, name: string, r: Replica, isLater: boolean): void;
  saveSums(key: string, sums: Sums): void;
  /** By their ends; of two at one instant the lesser name first. */
  sort(due: Due[]): void;
  /** The limits that the live say. */
  limitsOf(sums: Sums): number[];
}

/** Adds what a live replica told to the sums, or takes it off (sign -1). What it holds is counted elsewhere. */
function count(sums: Sums, r: Replica, sign: number): void {
  sums.uses += sign * r.uses;
  sums.short += sign * r.short;
  sums.live += sign;
  sums.weight += sign * r.weight;
  if (r.isHungry === 1) sums.hungry += sign * r.weight;
  else sums.content += sign * r.wants;
  if (r.ticket > 0) sums.waiting += sign;
  const saying = (sums.limits[r.limit] ?? 0) + sign;
  if (saying > 0) sums.limits[r.limit] = saying;
  else delete sums.limits[r.limit];
}

/** What it holds, and what an earlier incarnation of its name may still run, which a live replica is said to use. */
function hold(sums: Sums, r: Replica, holds: number, ghost: number): void {
  const step = holds + ghost - r.held - r.ghost;
  sums.held += step;
  if (r.stage > 0) sums.silent += step;
  else sums.uses += ghost - r.ghost;
  r.held = holds;
  r.ghost = ghost;
}

function fallSilent(sums: Sums, r: Replica): void {
  count(sums, r, -1);
  sums.silent += r.held + r.ghost;
  sums.uses -= r.ghost;
  r.stage = 1;
  r.ticket = 0;
}

function comeBack(sums: Sums, r: Replica): void {
  if (r.stage === 0) return;
  sums.silent -= r.held + r.ghost;
  sums.uses += r.ghost;
  r.stage = 0;
  count(sums, r, 1);
}

/** A replica is live (0), then silent with all that it holds (1), then with its safe share (2). False: forgotten. */
function pass(sums: Sums, r: Replica, now: number): boolean {
  if (r.ghost > 0 && now > r.ghostEnd) hold(sums, r, r.held, 0);
  if (r.stage === 0 && now > r.leaseEnd) fallSilent(sums, r);
  if (r.stage > 0 && now > r.drainEnd) {
    r.stage = 2;
    hold(sums, r, Math.min(r.held, r.safe), r.ghost);
    const first = Math.max(r.joins, sums.matched);
    if (r.isNamed === 0 && sums.joins > first) {
      sums.matched = first + 1;
      r.forgetEnd = 0;
    }
  }
  if (r.stage < 2 || now <= r.forgetEnd) return true;
  hold(sums, r, 0, 0);
  sums.known -= r.weight;
  return false;
}

function endOf(r: Replica, caller: Caller): number {
  let ending = r.stage === 0 ? r.leaseEnd : r.stage === 1 ? r.drainEnd : r.forgetEnd;
  if (r.stage === 2 && r.isNamed === 0) ending = Math.min(ending, caller.now + caller.lease);
  return r.ghost > 0 ? Math.min(ending, r.ghostEnd) : ending;
}

/** Looks at all replicas: seldom, because who is alive has called again, and its end has moved on. */
function sweep(memory: LeaseMemory, key: string, sums: Sums, caller: Caller): void {
  const due: Due[] = [];
  sums.nextEnd = caller.now + caller.lease;
  for (const { name, r } of memory.replicas(key)) {
    const ending = endOf(r, caller);
    if (caller.now > ending || (r.stage === 2 && r.isNamed === 0)) due.push({ name, r, ending });
    else sums.nextEnd = Math.min(sums.nextEnd, ending);
  }
  memory.sort(due);
  for (const { name, r } of due) {
    if (pass(sums, r, caller.now)) {
      memory.write(key, name, r);
      sums.nextEnd = Math.min(sums.nextEnd, endOf(r, caller));
    } else memory.remove(key, name);
  }
}

/** The weight of those that have not called in this epoch, and whether anybody may grow. */
function learn(sums: Sums, caller: Caller, told: Told, isNew: boolean): { isLearning: boolean; absent: number } {
  const { now, lease } = caller;
  const { weight, rememberedEpoch, rememberedWeight } = told;
  if (rememberedEpoch > 0 && rememberedEpoch !== sums.began) {
    sums.expected = Math.max(sums.expected, rememberedWeight);
    sums.learnsUntil = Math.max(sums.learnsUntil, sums.began + lease);
    if (isNew) sums.called += weight;
  } else if (isNew && !caller.isLeaving) sums.joined += weight;
  const absent = now <= sums.forgetEnd ? Math.max(0, sums.expected - sums.called) : 0;
  const isLearning = now < sums.learnsUntil || (absent > 0 && now <= sums.drainEnd);
  return { isLearning, absent: isLearning ? absent : Math.max(0, absent - sums.joined) };
}

/** The caller's replica, with its new ends, out of the sums, and without what it held. */
function renew(memory: LeaseMemory, sums: Sums, before: Replica | undefined, caller: Caller, told: Told): Replica {
  const { now, id, isNamed, lease, drain, forget } = caller;
  const { sequence, limit, weight } = told;
  const mine = before ?? memory.newReplica(id);
  const wasOver = mine.stage === 2;
  if (before === undefined) {
    Object.assign(mine, { born: now, isNamed });
    sums.joins += caller.isLeaving ? 0 : 1 - isNamed;
  } else {
    comeBack(sums, mine);
    count(sums, mine, -1);
  }
  if (mine.id !== id) {
    if (!wasOver) mine.ghostEnd = Math.max(mine.ghostEnd, now + drain, mine.leaseEnd);
    hold(sums, mine, 0, mine.ghost + (wasOver ? 0 : mine.held));
    Object.assign(mine, { id, born: Math.max(now, mine.born + 1), ticket: 0, since: 0, hasRival: 0 });
  }
  sums.known += weight - mine.weight;
  Object.assign(mine, { sequence, weight, limit, joins: sums.joins, leaseEnd: now + lease });
  Object.assign(mine, { drainEnd: mine.leaseEnd + drain, forgetEnd: mine.leaseEnd + drain + forget });
  hold(sums, mine, 0, mine.ghost);
  return mine;
}

/** It is known for a drain, so that a late call of it is not taken for one that the store has lost. */
function leave(sums: Sums, mine: Replica, caller: Caller, inFlight: number): void {
  const forgetEnd = Math.max(mine.ghostEnd, caller.now + caller.drain);
  // What an earlier one may still run is kept until it is over, and so is what is in flight.
  if (inFlight > 0) mine.ghostEnd = forgetEnd;
  hold(sums, mine, 0, mine.ghost + inFlight);
  Object.assign(mine, { stage: 2, isNamed: 1, safe: 0, forgetEnd });
  sums.silent += mine.ghost;
  sums.uses -= mine.ghost;
  if (mine.ghost === 0) {
    sums.known -= mine.weight;
    mine.weight = 0;
  }
}

/** What of `wanted` is the replica's own part: one seat in its turn, where there are fewer than replicas. */
function partOf(sums: Sums, mine: Replica, caller: Caller, wanted: number, fair: number, free: number): number {
  const part = Math.max(0, Math.min(wanted, fair) - mine.ghost);
  if (part > 0 || wanted === 0) return part;
  const place = sums.waiting + 1 + (mine.ticket > 0 ? mine.ticket - sums.ticket : 0);
  return place <= free || (mine.since > 0 && caller.now < mine.since + 2 * caller.lease) ? 1 : 0;
}

type Share = Readonly<Record<'grant' | 'safe' | 'target', number>>;

/** `limit`: the smallest that anybody says; `whole`: less what is kept for absent weight. */
function share(
  sums: Sums,
  mine: Replica,
  caller: Caller,
  told: Told,
  isLearning: boolean,
  whole: number,
  limit: number,
): Share {
  const { weight, cap, inFlight, wants, safeInUse, most } = told;
  const free = whole - sums.held;
  const room = whole - sums.silent;
  const left = room - sums.uses - sums.short;
  let wanted = Math.min(wants, limit, most);
  // A seat for each of the idle, where these are a tenth of the limit at most.
  if (wanted === 0 && 10 * sums.live <= limit) wanted = 1;
  const fair = Math.max(0, Math.floor(((room - sums.content) * weight) / (sums.hungry + weight)));
  const part = partOf(sums, mine, caller, wanted, fair, free);
  let target = Math.max(part, Math.min(wanted, left));
  if (wanted <= fair && sums.hungry === 0 && sums.short === 0) {
    let spare = Math.floor(((room - sums.content - wanted) * weight) / (sums.weight + weight));
    // What is left over goes to whoever comes when the others have theirs.
    if (sums.uses >= sums.content + spare * sums.live) spare += 1;
    target = Math.max(target, Math.min(wanted + spare, limit, most));
  }
  const grant = Math.max(0, Math.min(isLearning ? cap : target, free));
  const safe = Math.min(grant, Math.floor((limit * weight) / (sums.weight + weight)));
  const uses = Math.max(grant, inFlight);
  const short = Math.max(0, Math.min(wanted, Math.max(part, 1)) - uses);
  const since = mine.since > 0 ? mine.since : caller.now;
  Object.assign(mine, { wants: wanted, isHungry: wanted > fair ? 1 : 0, uses, short, since: grant > 0 ? since : 0 });
  mine.safe = Math.max(safe, safeInUse);
  if (grant > 0 || wanted <= inFlight) mine.ticket = 0;
  else if (mine.ticket === 0) {
    sums.ticket += 1;
    mine.ticket = sums.ticket;
  }
  hold(sums, mine, Math.max(grant, cap, inFlight), mine.ghost);
  return { grant, safe, target };
}

/** What an answer says when the call is of no use: `state` 2 where another replica has the name. */
function refused(sequence: number, began: number, holds: number, state: number): number[] {
  return [sequence, -1, 0, began, 0, 0, 0, 0, holds, 0, 0, 0, state, 0];
}

/** An epoch begins, of which nothing is known. */
function begin(memory: LeaseMemory, key: string, caller: Caller, began: number): Sums {
  const sums = memory.begin(key);
  const { now, refresh, lease, drain, forget } = caller;
  Object.assign(sums, { began: Math.max(now, began + 1), learnsUntil: caller.isLasting ? now : now + refresh });
  Object.assign(sums, { nextEnd: now + lease, drainEnd: now + lease + drain, forgetEnd: now + lease + drain + forget });
  return sums;
}

/**
 * A call for the limit of `key`. Of its answer: sequence, grant, safe share, epoch, learning (0 or 1), replicas, limit,
 * largest limit, held, target, the pool's weight, birth, state (0, 1: another has the name too, 2: another has it), and
 * what others lack.
 */
export function visit(memory: LeaseMemory, key: string, caller: Caller, told: Told): number[] {
  const { clock, self, id, isLeaving } = caller;
  const { sequence, acknowledged, limit, inFlight, rememberedBirth } = told;
  let { sums, mine: before } = memory.open(key, self);
  caller.now = clock;
  let began = 0;
  let holds = 0;
  if (sums !== undefined) {
    caller.now = Math.max(clock + sums.ahead, sums.last);
    began = sums.began;
    if (caller.now > sums.nextEnd && !caller.hasSwept) {
      caller.hasSwept = true;
      sweep(memory, key, sums, caller);
      memory.saveSums(key, sums);
      before = memory.open(key, self).mine;
    }
    holds = sums.held;
  }
  let known = 0;
  if (before !== undefined && before.id === id) {
    known = before.sequence;
    // A delayed call, or its duplicate: the reply is of no use, and changes nothing.
    if (sequence <= known) return refused(known, began, holds, 0);
  } else if (before !== undefined && !isLeaving && rememberedBirth > 0 && rememberedBirth < before.born) {
    before.hasRival = 1;
    memory.write(key, self, before);
    return refused(sequence, began, holds, 2);
  } else if (isLeaving && (before !== undefined || inFlight === 0)) {
    // Who has left with nothing, or whose name another has, leaves nothing behind.
    return [sequence, 0, 0, began, 0, 1, limit, limit, holds, 0, 0, 0, 0, 0];
  }
  // A store that knows less than it acknowledged has lost writes, of this replica and perhaps of others.
  if (sums === undefined || (!isLeaving && known < acknowledged && caller.now >= sums.learnsUntil)) {
    sums = begin(memory, key, caller, began);
    before = undefined;
  }
  const { isLearning, absent } = learn(sums, caller, told, before === undefined);
  const mine = renew(memory, sums, before, caller, told);
  const limits = memory.limitsOf(sums);
  const smallest = Math.min(limit, ...limits);
  const kept = absent > 0 && !isLearning ? Math.ceil((smallest * absent) / sums.expected) : 0;
  let given: Share = { grant: 0, safe: 0, target: 0 };
  if (isLeaving) leave(sums, mine, caller, inFlight);
  else given = share(sums, mine, caller, told, isLearning, smallest - kept, smallest);
  const { grant, safe, target } = given;
  const lack = sums.short;
  if (mine.stage === 0) count(sums, mine, 1);
  sums.nextEnd = Math.min(sums.nextEnd, endOf(mine, caller));
  Object.assign(sums, { last: caller.now, ahead: caller.now - clock });
  const isLater = mine.forgetEnd > sums.lastEnd;
  if (isLater) sums.lastEnd = mine.forgetEnd + caller.lease;
  memory.save(key, sums, self, mine, isLater);
  const pool = [
    Math.max(1, sums.live),
    smallest,
    Math.max(limit, ...limits),
    sums.held + kept,
    target,
    sums.known + absent,
  ];
  pool.push(mine.born, mine.hasRival, lack);
  return [sequence, grant, safe, sums.began, isLearning ? 1 : 0, ...pool];
}
