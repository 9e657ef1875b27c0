/** A master with two replicas, and three sentinels that watch over them. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { Store, type StoreKind } from './stores.js';

/** A master that does not answer for so long counts as failed. */
const downAfterMs = 1_000;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

async function eventually(isTrue: () => Promise<boolean>): Promise<void> {
  while (!(await isTrue().catch(() => false))) await pause(50);
}

export class Sentinels {
  readonly name = 'primary';
  readonly servers: readonly Store[];
  readonly sentinels: readonly Store[];
  private readonly admins = new Map<Store, Redis>();

  private constructor(servers: readonly Store[], sentinels: readonly Store[]) {
    this.servers = servers;
    this.sentinels = sentinels;
  }

  /** Resolves when every sentinel knows the others and the replicas. */
  static async start(kind: StoreKind): Promise<Sentinels> {
    const master = await Store.start(kind);
    const replica = (): Promise<Store> => Store.start(kind, ['--replicaof', '127.0.0.1', String(master.port)]);
    const servers = [master, await replica(), await replica()];
    const sentinels: Store[] = [];
    for (let i = 0; i < 3; i++)
      sentinels.push(await Store.startSentinel(kind, (folder) => configFile(folder, master.port)));
    const all = new Sentinels(servers, sentinels);
    await all.ready();
    return all;
  }

  get ports(): readonly number[] {
    return this.sentinels.map(({ port }) => port);
  }

  /** The master that the sentinels name. */
  async master(): Promise<Store> {
    for (const sentinel of this.sentinels) {
      const reply = await this.admin(sentinel)
        .call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', this.name)
        .catch(() => undefined);
      const port = Number((reply as string[] | undefined)?.[1]);
      const found = this.servers.find((server) => server.port === port);
      if (found !== undefined) return found;
    }
    throw new Error('no sentinel answers');
  }

  /**
   * Resolves when both replicas have all that the master has been told until now. Sentinels on a loaded machine may
   * take a master for dead that is not: it is asked for anew at each look.
   */
  async replicated(): Promise<void> {
    const replication = async (): Promise<string> => this.admin(await this.master()).info('replication');
    const at = Number(/master_repl_offset:(\d+)/.exec(await replication())?.[1]);
    await eventually(async () => {
      const offsets = [...(await replication()).matchAll(/slave\d+:.*offset=(\d+)/g)];
      return offsets.length === 2 && offsets.every(([, offset]) => Number(offset) >= at);
    });
  }

  /** Resolves when another server takes writes instead of `old`. */
  async failedOver(old: Store): Promise<Store> {
    await eventually(async () => {
      const master = await this.master();
      return master.port !== old.port && /role:master/.test(await this.admin(master).info('replication'));
    });
    return this.master();
  }

  async stop(): Promise<void> {
    for (const admin of this.admins.values()) admin.disconnect();
    await Promise.all([...this.sentinels, ...this.servers].map((store) => store.stop()));
  }

  private admin(store: Store): Redis {
    const known = this.admins.get(store);
    if (known !== undefined) return known;
    const admin = new Redis(store.port, { retryStrategy: () => 50, maxRetriesPerRequest: 0 });
    admin.on('error', () => {});
    this.admins.set(store, admin);
    return admin;
  }

  private async ready(): Promise<void> {
    await eventually(async () => {
      const known = await Promise.all(
        this.sentinels.map(async (sentinel) => {
          const reply = (await this.admin(sentinel).call('SENTINEL', 'MASTER', this.name)) as string[];
          const value = (field: string): number => Number(reply[reply.indexOf(field) + 1]);
          return value('num-slaves') === 2 && value('num-other-sentinels') === 2;
        }),
      );
      return known.every(Boolean);
    });
  }
}

/** A sentinel keeps what it learns in its file. */
function configFile(folder: string, port: number): string {
  const file = join(folder, 'sentinel.conf');
  const lines = [
    `sentinel monitor primary 127.0.0.1 ${port} 2`,
    `sentinel down-after-milliseconds primary ${downAfterMs}`,
    'sentinel failover-timeout primary 10000',
    'sentinel parallel-syncs primary 2',
  ];
  writeFileSync(file, `${lines.join('\n')}\n`);
  return file;
}
