/**
 * The connection of a gateway to its store, by the client that is installed. Invariant: another address, or another
 * secret, makes another client. It takes over once it is connected; the one before it ends when its calls are over.
 */
import { Listeners } from '../../base/listeners.js';
import { type LeaseOptions, redisStore, type Store } from '../../redis/index.js';
import { loadStoreClient } from './optional-peers.js';
import type { StoreAddress, StoreClient } from './store-clients.js';

type Made = StoreClient & { readonly store: Store };
/** Reads the address anew, with secrets that may have changed; undefined while it cannot be read. */
type Again = () => StoreAddress | undefined;

export interface SharedStateConfig {
  readonly store: StoreAddress;
  /** Reads `store` again, whose secrets may have changed; undefined while it cannot be read. */
  readonly readStore: () => StoreAddress | undefined;
  /** In flight: requests or tokens of the pool, or requests of each endpoint of weight 1; undefined: only quotas. */
  readonly limits: 'maxConcurrency' | 'maxTokens' | 'endpointConcurrency' | undefined;
  readonly limit: number;
  /** Whether the quotas of the file's `quota-detector` are those of all replicas. */
  readonly quotas: boolean;
  readonly leases: LeaseOptions & Readonly<Record<'leaseDuration' | 'refreshInterval', number>>;
}

export type Connection = Pick<StoreConnection, 'store' | 'follow' | 'end'>;

/** From one look at files with secrets to the next. */
const lookMs = 1_000;

export class StoreConnection {
  /** Goes on when the client is replaced. */
  readonly store: Store = {
    run: (script, keys, args) => this.current.store.run(script, keys, args),
    onError: (listener) => this.errorListeners.subscribe(listener),
    isConnecting: () => this.current.store.isConnecting?.() === true,
    onReady: (listener) => this.readyListeners.subscribe(listener),
  };
  private readonly errorListeners = new Listeners<[error: unknown]>();
  private readonly readyListeners = new Listeners();
  private readonly make: (address: StoreAddress) => StoreClient;
  private readonly leaseMs: number;
  private readonly clients = new Set<Made>();
  private address: StoreAddress;
  private current: Made;
  /** It takes over when it is connected. */
  private next: Made | undefined = undefined;
  private readonly looking: NodeJS.Timeout;

  private constructor(address: StoreAddress, again: Again, leaseMs: number, make: StoreConnection['make']) {
    this.make = make;
    this.leaseMs = leaseMs;
    this.address = address;
    this.current = this.connect(address);
    this.looking = setInterval(() => this.follow(again()), lookMs).unref();
  }

  /** Does not wait for the store. @throws (rejects) FlowConfigError when none of the clients is installed */
  static async open(address: StoreAddress, again: Again, leaseMs: number): Promise<StoreConnection> {
    return new StoreConnection(address, again, leaseMs, await loadStoreClient(leaseMs));
  }

  /** Nothing happens while the address is the same. */
  follow(address: StoreAddress | undefined): void {
    if (address === undefined || JSON.stringify(address) === JSON.stringify(this.address)) return;
    this.address = address;
    if (this.next !== undefined) this.endClient(this.next);
    this.next = this.connect(address);
  }

  end(): void {
    clearInterval(this.looking);
    for (const client of [...this.clients]) this.endClient(client);
  }

  private connect(address: StoreAddress): Made {
    const client = this.make(address);
    const made = { ...client, store: redisStore(client.client) };
    this.clients.add(made);
    made.store.onError((error) => {
      if (made === this.current || made === this.next) this.errorListeners.announce(error);
    });
    made.store.onReady?.(() => this.ready(made));
    return made;
  }

  private ready(made: Made): void {
    if (made === this.next) {
      const before = this.current;
      this.current = made;
      this.next = undefined;
      setTimeout(() => this.endClient(before), this.leaseMs).unref();
    }
    if (made === this.current) this.readyListeners.announce();
  }

  private endClient(made: Made): void {
    if (this.clients.delete(made)) made.end();
  }
}
