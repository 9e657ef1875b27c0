/**
 * The connections to the servers: to each of them as many as there are exchanges with it at a time.
 *
 *     ask ─► the client that was free last ─► busy ─► `drain` ─► free
 *
 * A pool of undici looks for a client that is free from the first one on, which costs more than a whole request beside
 * some thousand open streams (bench: gateway). The client that was free last has a connection that is still open.
 * Invariant: a client is in the list of free ones only while it does nothing. Free ones in excess are closed.
 */
import Denque from 'denque';
import type { Agent, Client, Dispatcher } from 'undici';

/** So many may be free beyond those that are busy. */
const mostIdle = 50;

/** `connectMs`: how long a server may take to accept a connection. */
export function makeAgent(undici: typeof import('undici'), connectMs: number): Agent {
  // One for all, because it keeps TLS sessions.
  const connect = undici.buildConnector({ timeout: connectMs });

  class Connections extends undici.Dispatcher {
    private readonly origin: URL;
    private readonly clients = new Set<Client>();
    private readonly free = new Denque<Client>();

    constructor(origin: URL) {
      super();
      this.origin = origin;
    }

    override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
      const client = this.free.pop() ?? this.make();
      // It says `drain` when it has become free.
      if (client.dispatch(options, handler)) this.free.push(client);
      return true;
    }

    override close(): Promise<void> {
      return this.end((client) => client.close());
    }

    override destroy(): Promise<void> {
      return this.end((client) => client.destroy());
    }

    private async end(how: (client: Client) => Promise<void>): Promise<void> {
      await Promise.all([...this.clients].map(how));
    }

    /** The agent forgets a server when its last connection has ended. */
    private make(): Client {
      const client = new undici.Client(this.origin, { connect });
      this.clients.add(client);
      client.on('drain', () => this.freed(client));
      client.on('connect', (origin, targets) => this.emit('connect', origin, targets));
      client.on('disconnect', (origin, targets, error) => this.emit('disconnect', origin, targets, error));
      client.on('connectionError', (origin, targets, error) => this.emit('connectionError', origin, targets, error));
      return client;
    }

    private freed(client: Client): void {
      this.free.push(client);
      while (2 * this.free.length > this.clients.size + mostIdle) {
        const longest = this.free.shift()!;
        this.clients.delete(longest);
        longest.close().catch(() => {});
      }
    }
  }
  return new undici.Agent({ factory: (origin) => new Connections(new URL(origin)) });
}
