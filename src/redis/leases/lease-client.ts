/**
 * The replica's side of capacity leases: one call a refresh for all. Invariant: only the latest call's answer counts,
 * from when that was sent, so that foreign clocks and slow, lost or repeated answers do not matter.
 */

import { letProcessEnd } from '../../base/clock.js';
import { GuardedEvents } from '../../base/faults/guarded-events.js';
import { Listeners } from '../../base/listeners.js';
import { OneTimer } from '../../base/one-timer.js';
import * as s from '../../base/schema/schema.js';
import { CallSchedule } from '../store/call-schedule.js';
import { type RedisClient, storeSchema } from '../store/redis-store.js';
import type { LinkFigures, Store } from '../store/store.js';
import { StoreLink } from '../store/store-link.js';
import { newReplicaId } from '../store/store-options.js';
import { StoreError, type StoreProblem } from '../store/store-problem.js';
import type { CapacityLease, Grant, LeaseEvents } from './capacity-lease.js';
import { checkTiming, type LeaseOptions, leaseOptions, type ParsedLeaseOptions } from './lease-options.js';
import { grantsOf, isRepeated, mismatch, nameConflict, sequenceIn } from './lease-reply.js';
import { leaseScript } from './lease-script.js';
import { freeReplicaName, type ReplicaName, replicaName } from './replica-name.js';

/** A replica whose demand has outgrown its share calls at once, but not more often than this. */
const urgentMs = 100;
const sameProblemMs = 60_000;
/** Fits into the store's integers; Infinity becomes a week. */
const longestMs = 7 * 86_400_000;
/** Of so many leases each is told in each call; of more, those of which there is something to tell. */
const fewLeases = 8;

const told = ['granted', 'expired', 'recovered', 'epoch', 'problem', 'breaker'] as const;

export class LeaseClient {
  readonly events: GuardedEvents<LeaseEvents> = new GuardedEvents(...told);
  epochChanges = 0;
  /** Of the replica. It changes when another has the same. */
  name: string;
  private readonly firstName: string;
  private isNamed: boolean;
  /** It is different for each process, and changes with a restart. */
  private readonly incarnation = newReplicaId();
  private readonly leases = new Map<string, CapacityLease>();
  private readonly listeners = new Listeners();
  /** Hears when a limit may have risen. */
  readonly subscribe: Listeners['subscribe'] = this.listeners.subscribe;
  private readonly expired = new Map<string, number>();
  readonly settings: ParsedLeaseOptions;
  readonly store: Store;
  readonly nameOrigin: ReplicaName['origin'];
  /** In it found names differ. */
  private readonly place: string;
  private readonly link: StoreLink;
  private readonly schedule: CallSchedule;
  private sequence = 0;
  private sentAtMs: number = -Infinity;
  /** The leases of the latest call, in its order; undefined once it was answered. */
  private asked: readonly CapacityLease[] | undefined = undefined;
  private isUrgent = false;
  private isClosed = false;
  private readonly expiry: OneTimer;

  /** @throws FlowConfigError */
  constructor(client: RedisClient | Store, options: LeaseOptions, subject: string) {
    const store = s.parse(storeSchema, client, `${subject}: client`);
    const settings = s.parse(leaseOptions, options, subject);
    checkTiming(settings, subject);
    this.place = `${subject} ${settings.prefix} ${settings.pool}`;
    const { name, origin } = replicaName(settings.replica, this.place);
    this.store = store;
    this.settings = settings;
    this.name = name;
    this.firstName = name;
    this.nameOrigin = origin;
    this.isNamed = origin !== 'random';
    this.schedule = new CallSchedule(settings.clock, () => this.call());
    this.expiry = new OneTimer(settings.clock, () => this.expire());
    const listener = {
      problem: (problem: StoreProblem) => this.events.emit('problem', problem),
      sameAfterMs: sameProblemMs,
      breaker: (isOpen: boolean) => this.events.emit('breaker', { isOpen }),
      connected: () => void this.schedule.call(),
    };
    // A store that comes back empty learns for one lease: by then every replica must have called.
    this.link = new StoreLink(store, settings, this.where, listener, settings.refreshInterval);
  }

  private get where(): string {
    return `pool "${this.settings.pool}"`;
  }

  get figures(): LinkFigures {
    return this.store.figures ?? this.link.figures;
  }

  add(lease: CapacityLease): void {
    this.leases.set(lease.key, lease);
    this.callUrgentlyIn(0);
  }

  /** Takes a lease out; its seats are free again once a lease and the drain are over. */
  remove(key: string): void {
    this.leases.delete(key);
    this.expired.delete(key);
  }

  /** For demand above the share of `lease`: calls the store soon, unless the last call said so already. O(1). */
  callSoon(lease: CapacityLease): void {
    if (this.isUrgent || this.isClosed || lease.last === undefined || lease.told.wants > lease.last.grant) return;
    this.callUrgentlyIn(Math.max(0, this.sentAtMs + urgentMs - this.settings.clock.now()));
  }

  /** Gives the share back, except for what is in flight, and stops: nothing new may go. Never rejects. */
  async close(): Promise<void> {
    if (this.isClosed) return;
    this.isClosed = true;
    freeReplicaName(this.firstName, this.place);
    this.schedule.stop();
    this.expiry.stop();
    const leases = [...this.leases.values()];
    for (const lease of leases) lease.close();
    try {
      this.sequence++;
      const args = this.argumentsFor(leases, 'leave');
      if (leases.length > 0) await this.link.run(leaseScript, keysOf(leases), args);
    } catch {
      // The store learns of it when the lease ends.
    }
    this.link.close();
  }

  private callUrgentlyIn(delayMs: number): void {
    this.isUrgent = true;
    if (!this.isClosed) this.schedule.callIn(delayMs);
  }

  private call(): Promise<void> | undefined {
    if (this.isClosed || this.leases.size === 0) return undefined;
    this.isUrgent = false;
    this.sequence++;
    const nowMs = this.settings.clock.now();
    this.sentAtMs = nowMs;
    const areFew = this.leases.size <= fewLeases;
    const leases = [...this.leases.values()].filter((each) => areFew || each.isDue(nowMs, each.demand().wants));
    if (leases.length === 0) return void this.ended();
    this.asked = leases;
    const args = this.argumentsFor(leases, 'call');
    return this.link
      .ask(leaseScript, keysOf(leases), args, (reply) => this.takeReply(reply))
      .catch((error) => {
        if (error instanceof StoreError) for (const lease of leases) this.missed(lease);
      })
      .then(() => this.ended());
  }

  private ended(): void {
    const { refreshInterval: refreshMs, random, clock } = this.settings;
    this.schedule.over(this.link.retryInMs);
    if (this.isClosed) return;
    const nowMs = clock.now();
    let intervalMs = refreshMs * (0.9 + 0.1 * random());
    if (this.isUrgent) intervalMs = urgentMs;
    else if ([...this.leases.values()].some((lease) => lease.isBeginning(nowMs, refreshMs))) intervalMs = refreshMs / 5;
    this.schedule.callIn(Math.max(0, this.sentAtMs + intervalMs - nowMs));
  }

  private argumentsFor(leases: readonly CapacityLease[], operation: 'call' | 'leave'): string[] {
    const { refreshInterval, leaseDuration, drainDuration, forgetAfter, clock } = this.settings;
    const spans = [refreshInterval, leaseDuration, drainDuration, forgetAfter].map((ms) => Math.min(ms, longestMs));
    const args = [this.name, this.incarnation, ...[Number(this.isNamed), ...spans].map(String), operation];
    const nowMs = clock.now();
    for (const lease of leases) {
      // The store may have forgotten a replica that was silent for so long.
      const isRemembered = nowMs < lease.expiresAtMs + Math.min(drainDuration, longestMs);
      // Whoever asks for the demand of one may let requests go under another: each is asked and told in one step.
      const told = lease.tell(nowMs, lease.demand(), isRemembered);
      for (const number of [this.sequence, ...told]) args.push(String(Math.ceil(number)));
    }
    return args;
  }

  /** Takes a reply of any call, a late one too. Undefined when it is not a valid one. */
  private takeReply(reply: unknown): true | undefined {
    const { asked, incarnation } = this;
    if (asked === undefined || this.isClosed) return true;
    if (sequenceIn(reply, incarnation) < this.sequence) return true;
    const answers = grantsOf(reply, incarnation, asked);
    if (answers === undefined || answers.some(({ sequence }) => sequence !== this.sequence)) return undefined;
    const rivals = answers.findIndex((answer) => answer.rivals > 0);
    const hasLost = answers.some((answer) => answer.rivals > 1);
    if (rivals >= 0) this.meetRival(asked[rivals] as CapacityLease, hasLost);
    if (answers.some(isRepeated)) return true;
    this.asked = undefined;
    const nowMs = this.settings.clock.now();
    let hasRisen = false;
    for (const [index, lease] of asked.entries()) {
      const answer = answers[index] as Grant;
      const before = lease.cap(nowMs);
      this.take(lease, answer, nowMs);
      hasRisen ||= lease.cap(nowMs) > before;
      this.isUrgent ||= answer.lack > 0 && lease.hasSpare;
    }
    this.expire();
    if (hasRisen) this.listeners.announce();
    return true;
  }

  /** Another process has the name. The one that had it before goes on under a name of its own. */
  private meetRival(lease: CapacityLease, hasLost: boolean): void {
    this.link.tell(nameConflict(this.where, lease.key, this.firstName));
    if (!hasLost) return;
    this.name = `${this.firstName}~${this.incarnation}`;
    this.isNamed = false;
    for (const each of this.leases.values()) each.rename();
    this.isUrgent = true;
  }

  private take(lease: CapacityLease, answer: Grant, nowMs: number): void {
    const { last, key } = lease;
    lease.granted(answer, this.sentAtMs);
    const expiredAtMs = this.expired.get(key);
    if (expiredAtMs !== undefined) {
      this.expired.delete(key);
      this.events.emit('recovered', { key, grant: answer.grant, expiredForMs: nowMs - expiredAtMs });
    }
    if (last !== undefined && answer.epoch !== last.epoch) {
      this.epochChanges++;
      this.events.emit('epoch', { key, epoch: answer.epoch, before: last.epoch });
    }
    if (answer.limit !== answer.largestLimit) this.link.tell(mismatch(this.where, key, answer));
    if (answer.grant !== last?.grant)
      this.events.emit('granted', { key, grant: answer.grant, before: last?.grant ?? 0, answer });
  }

  private missed(lease: CapacityLease): void {
    const { clock } = this.settings;
    const nowMs = clock.now();
    const before = lease.cap(nowMs);
    lease.missed(nowMs);
    // A replica that finds no store for a lease begins with its first share.
    if (lease.cap(nowMs) > before) this.listeners.announce();
  }

  private expire(): void {
    const nowMs = this.settings.clock.now();
    let nextMs = Infinity;
    let hasEnded = false;
    for (const lease of this.leases.values()) {
      if (lease.last === undefined || this.expired.has(lease.key)) continue;
      if (lease.expiresAtMs > nowMs) nextMs = Math.min(nextMs, lease.expiresAtMs - nowMs);
      else {
        hasEnded = true;
        this.expired.set(lease.key, nowMs);
        this.events.emit('expired', { key: lease.key, limit: lease.cap(nowMs) });
      }
    }
    // A timer may be early by a millisecond.
    if (nextMs < Infinity) letProcessEnd(this.expiry.set(nowMs + nextMs, nextMs + 1));
    if (hasEnded) this.listeners.announce();
  }
}

const keysOf = (leases: readonly CapacityLease[]): string[] => leases.map(({ key }) => key);
