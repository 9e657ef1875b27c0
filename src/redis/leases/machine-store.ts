/**
 * One replica for all workers of a machine: this process has one lease on each limit, and divides it among them by the
 * same protocol, in its own memory.
 *
 *     workers ── leases ──► local table, whose limit is the machine's grant ◄── one lease for each limit ── store
 *     workers ── all else ────────────────────────────────────────────────────────────────────────────────► store
 *
 * Invariant: no worker has a lease beyond the end of the machine's, and the store is told all that the workers hold.
 */
import { put } from '../../base/put.js';
import { localStore } from '../store/local-store.js';
import type { RedisClient } from '../store/redis-store.js';
import type { Store, StoreScript, Texts } from '../store/store.js';
import { CapacityLease, type LeaseDemand } from './capacity-lease.js';
import { LeaseClient } from './lease-client.js';
import type { LeaseOptions } from './lease-options.js';
import { replyWidth } from './lease-reply.js';
import { leaseScript } from './lease-script.js';
import { toldFields } from './lease-step.js';
import type { LeasedDetector } from './leased-detector.js';

/** A store for `serveStore`, whose workers are one replica, with the figures of its calls. Close it after their end. */
export type MachineStore = Store & Pick<LeasedDetector, 'on' | 'close'>;

/** One limit of the machine. */
interface Divided {
  readonly lease: CapacityLease;
  /** What each worker said last, and its safe share. */
  readonly parts: Map<string, Record<'inFlight' | 'wants' | 'limit' | 'safe', number>>;
  /** By the local table: the seats of all workers. */
  held: number;
  /** When all of them may be gone, with all that they ran, unless one calls again. */
  untilMs: number;
}

/** Where the figures of the first limit begin among the arguments. */
const firstFigure = 8;
/** Where figures stand in an answer: see `grantsOf`. */
const at = { safe: 3, replicas: 6, limit: 7, held: 9 } as const;

/**
 * A store that workers of one machine share by `serveStore`, so that they are one replica of each limit: the store gets
 * one call for all. `options` are those of the machine, with its name, weight and fallback. Workers have half of its
 * `leaseDuration` at most, so that their leases end before the machine's. @throws FlowConfigError
 * @example
 * const store = machineStore(redisStore(client), { pool: 'chat' });
 * cluster.on('fork', (worker) => serveStore(store, worker));
 */
export function machineStore(client: RedisClient | Store, options: LeaseOptions): MachineStore {
  const leases = new LeaseClient(client, options, 'machineStore');
  const { store, settings } = leases;
  const { clock } = settings;
  const table = localStore({ clock });
  const limits = new Map<string, Divided>();

  function divided(key: string, limit: number): Divided {
    const parts: Divided['parts'] = new Map();
    const sum = (field: 'inFlight' | 'wants' | 'safe'): number =>
      [...parts.values()].reduce((all, each) => all + each[field], 0);
    function demand(): LeaseDemand {
      if (clock.now() > own.untilMs && limits.delete(key)) leases.remove(key);
      return { inFlight: sum('inFlight'), wants: sum('wants'), held: own.held, heldSafe: sum('safe') };
    }
    const own = { lease: new CapacityLease(key, demand, limit, settings), parts, held: 0, untilMs: Infinity };
    leases.add(own.lease);
    return own;
  }

  /** Takes note of what the worker says, and puts what the machine may use in the place of the limit. */
  function hear(key: string, args: string[], from: number): void {
    const [worker = '', , , , leaseMs, drainMs, , operation] = args;
    if (operation === 'leave') return void limits.get(key)?.parts.delete(worker);
    const figure = (field: (typeof toldFields)[number]): number => Number(args[from + toldFields.indexOf(field)]);
    const [inFlight, wants, limit] = [figure('inFlight'), figure('wants'), figure('limit')];
    const own = limits.get(key) ?? put(limits, key, divided(key, limit));
    const { lease, parts } = own;
    own.untilMs = clock.now() + Number(leaseMs) + Number(drainMs);
    parts.set(worker, { inFlight, wants, limit, safe: 0 });
    lease.limit = Math.min(...Array.from(parts.values(), (part) => part.limit));
    // What is sure to the end of the worker's lease.
    const sure = Math.min(lease.limit, lease.cap(clock.now() + Number(leaseMs)));
    args[from + toldFields.indexOf('limit')] = String(Math.floor(sure));
  }

  /** Makes the answer of the local table one of the store: its safe share is a part of the machine's. */
  function answer(key: string, worker: string, reply: string[], from: number): void {
    const own = limits.get(key);
    if (own === undefined) return;
    const { lease, parts } = own;
    const told = (place: keyof typeof at): number => Number(reply[from + at[place]]);
    own.held = told('held');
    const ownSafe = Math.floor((told('safe') * lease.safeShare) / Math.max(1, told('limit'), lease.safeShare));
    const part = parts.get(worker);
    if (part !== undefined) part.safe = ownSafe;
    reply[from + at.safe] = String(ownSafe);
    reply[from + at.replicas] = String(told('replicas') * (lease.last?.replicas ?? 1));
    reply[from + at.held] = String(lease.last?.held ?? 0);
    if (lease.demand().wants > lease.cap(clock.now())) leases.callSoon(lease);
  }

  async function divide(keys: Texts, given: Texts): Promise<unknown> {
    const args = [...given];
    for (const [index, key] of keys.entries()) hear(key, args, firstFigure + index * toldFields.length);
    const reply = (await table.run(leaseScript, keys, args)) as string[];
    for (const [index, key] of keys.entries()) answer(key, args[0] as string, reply, index * replyWidth);
    return reply;
  }

  return {
    run: (script: StoreScript, keys, args) =>
      script.name === leaseScript.name ? divide(keys, args) : store.run(script, keys, args),
    onError: (listener) => store.onError(listener),
    onReady: (listener) => store.onReady?.(listener) ?? (() => {}),
    messages: store.messages,
    get figures() {
      return leases.figures;
    },
    on: (event, listener) => leases.events.on(event, listener),
    close: () => leases.close(),
  };
}
