/** A cluster of real servers: three masters, each with a replica. */
import { Redis } from 'ioredis';
import { freePort } from '../../support/free-port.js';
import { Store, type StoreKind } from './stores.js';

/** A node that does not answer for so long counts as failed, and its replica takes its place. */
const nodeTimeoutMs = 2_000;
const masters = 3;
const slots = 16_384;

/** One line of `CLUSTER NODES`. */
interface NodeLine {
  readonly id: string;
  readonly port: number;
  readonly flags: readonly string[];
  /** Of a replica: the ID of its master. */
  readonly masterId: string;
  readonly isConnected: boolean;
  /** First and last slots. */
  readonly ranges: readonly (readonly [number, number])[];
}

function readNodes(text: string): NodeLine[] {
  return text
    .trim()
    .split('\n')
    .map((line) => {
      const [id = '', address = '', flags = '', masterId = '', , , , link, ...ranges] = line.split(' ');
      return {
        id,
        port: Number(/:(\d+)@/.exec(address)?.[1]),
        flags: flags.split(','),
        masterId,
        isConnected: link === 'connected',
        ranges: ranges.filter((range) => !range.startsWith('[')).map((range) => rangeOf(range)),
      };
    });
}

function rangeOf(text: string): readonly [number, number] {
  const [first, last = first] = text.split('-').map(Number) as [number, number?];
  return [first, last];
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Resolves when `isTrue`, however long that takes: the time limit of the test bounds it. */
async function eventually(isTrue: () => Promise<boolean>): Promise<void> {
  while (!(await isTrue().catch(() => false))) await pause(50);
}

export class Cluster {
  readonly stores: readonly Store[];
  /** The ports at which the nodes talk among themselves. */
  private readonly buses: readonly number[];
  private readonly admins = new Map<Store, Redis>();

  private constructor(stores: readonly Store[], buses: readonly number[]) {
    this.stores = stores;
    this.buses = buses;
  }

  /** Resolves when all slots are served, and each master has its replica. */
  static async start(kind: StoreKind, options: readonly string[] = []): Promise<Cluster> {
    const stores: Store[] = [];
    const buses: number[] = [];
    for (let i = 0; i < 2 * masters; i++) {
      const bus = await freePort();
      const own = [
        '--cluster-enabled',
        'yes',
        '--cluster-node-timeout',
        String(nodeTimeoutMs),
        '--cluster-port',
        String(bus),
      ];
      stores.push(await Store.start(kind, [...own, ...options]));
      buses.push(bus);
    }
    const cluster = new Cluster(stores, buses);
    await cluster.form();
    return cluster;
  }

  get ports(): readonly number[] {
    return this.stores.map(({ port }) => port);
  }

  /** The master that serves `key`. */
  async masterOf(key: string): Promise<Store> {
    const slot = await this.slotOf(key);
    const owner = (await this.nodes()).find(({ ranges }) =>
      ranges.some(([first, last]) => slot >= first && slot <= last),
    );
    return this.storeAt(owner!.port);
  }

  /** A master that does not serve `key`. */
  async otherMaster(key: string): Promise<Store> {
    const owner = await this.masterOf(key);
    const other = (await this.nodes()).find(({ flags, port }) => flags.includes('master') && port !== owner.port);
    return this.storeAt(other!.port);
  }

  async slotOf(key: string): Promise<number> {
    return Number(await this.ask('KEYSLOT', key));
  }

  /** Resolves when the replica of `master` has all that `master` has been told until now. */
  async replicated(master: Store): Promise<void> {
    const admin = this.admin(master);
    const offset = /master_repl_offset:(\d+)/;
    const at = Number(offset.exec(await admin.info('replication'))?.[1]);
    await eventually(async () => Number(/slave0:.*offset=(\d+)/.exec(await admin.info('replication'))?.[1]) >= at);
  }

  /** Resolves when another node serves `key` instead of `old`. */
  async failedOver(key: string, old: Store): Promise<Store> {
    await eventually(async () => (await this.masterOf(key)).port !== old.port);
    return this.masterOf(key);
  }

  /**
   * Moves the slot of `keys` to `target`, in steps; `between` runs while it is on its way, before the keys have gone.
   */
  async moveSlot(keys: readonly string[], target: Store, between: () => Promise<void>): Promise<void> {
    const source = await this.masterOf(keys[0]!);
    const slot = await this.slotOf(keys[0]!);
    const [from, to] = [this.admin(source), this.admin(target)];
    await to.cluster('SETSLOT', slot, 'IMPORTING', await this.idOf(source));
    await from.cluster('SETSLOT', slot, 'MIGRATING', await this.idOf(target));
    await between();
    for (const key of keys) await from.migrate('127.0.0.1', target.port, key, 0, 5_000);
    await between();
    for (const admin of [to, from]) await admin.cluster('SETSLOT', slot, 'NODE', await this.idOf(target));
  }

  async stop(): Promise<void> {
    for (const admin of this.admins.values()) admin.disconnect();
    await Promise.all(this.stores.map((store) => store.stop()));
  }

  /** A connection to one node. */
  admin(store: Store): Redis {
    const known = this.admins.get(store);
    if (known !== undefined) return known;
    const admin = new Redis(store.port, { retryStrategy: () => 50, maxRetriesPerRequest: 0 });
    admin.on('error', () => {});
    this.admins.set(store, admin);
    return admin;
  }

  private storeAt(port: number): Store {
    return this.stores.find((store) => store.port === port)!;
  }

  private idOf(store: Store): Promise<string> {
    return this.admin(store).cluster('MYID');
  }

  /** As the first node that answers sees them. */
  private async nodes(): Promise<NodeLine[]> {
    return readNodes(String(await this.ask('NODES'))).filter(({ flags }) => !flags.includes('fail'));
  }

  /** What the first node that answers says. */
  private async ask(...words: readonly string[]): Promise<unknown> {
    for (const store of this.stores) {
      const answer = await this.admin(store)
        .call('CLUSTER', ...words)
        .catch(() => undefined);
      if (answer !== undefined) return answer;
    }
    throw new Error('no node answers');
  }

  private async form(): Promise<void> {
    const [first, ...rest] = this.stores;
    const meeting = ['127.0.0.1', String(first!.port), String(this.buses[0])];
    const meet = (store: Store): Promise<unknown> => this.admin(store).call('CLUSTER', 'MEET', ...meeting);
    for (const store of rest) await meet(store);
    for (let i = 0; i < masters; i++) {
      const own = Array.from({ length: slots }, (_, slot) => slot).filter(
        (slot) => Math.floor((slot * masters) / slots) === i,
      );
      await this.admin(this.stores[i]!).cluster('ADDSLOTS', ...own);
    }
    await eventually(async () => {
      const seen = await Promise.all(
        this.stores.map(async (store) => readNodes(String(await this.admin(store).call('CLUSTER', 'NODES')))),
      );
      // A handshake that takes longer than the time limit of nodes is forgotten, as on a loaded machine.
      for (const store of rest)
        if ((seen[this.stores.indexOf(store)]?.length ?? 0) < this.stores.length) await meet(store);
      return seen.every(
        (nodes) => nodes.length === this.stores.length && nodes.every(({ isConnected }) => isConnected),
      );
    });
    for (let i = 0; i < masters; i++) {
      await this.admin(this.stores[masters + i]!).call('CLUSTER', 'REPLICATE', await this.idOf(this.stores[i]!));
    }
    await eventually(async () => {
      const infos = await Promise.all(this.stores.map((store) => this.admin(store).call('CLUSTER', 'INFO')));
      const links = await Promise.all(this.stores.slice(masters).map((store) => this.admin(store).info('replication')));
      return (
        infos.every((info) => /cluster_state:ok/.test(String(info))) &&
        links.every((info) => /master_link_status:up/.test(info))
      );
    });
    // A node learns from the others who replicates whom; a master without a known replica is not replaced.
    await eventually(async () => {
      const seen = await Promise.all(
        this.stores.map(async (store) => readNodes(String(await this.admin(store).call('CLUSTER', 'NODES')))),
      );
      return seen.every((nodes) => nodes.filter(({ flags }) => flags.includes('slave')).length === masters);
    });
  }
}
