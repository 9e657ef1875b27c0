/** A replica with a limit of sessions that it shares, for tests: its controller, and turns by name. */

import { EndpointPool, FlowController, type Lease, sessionLimit } from '../../src/index.js';
import { type SharedSessionsOptions, type Store, sharedSessions } from '../../src/redis/index.js';
import type { ManualClock } from '../../src/testing/index.js';
import type { SessionLimitOptions } from '../../src/types/index.js';
import { type Connection, MessageChannel, messageStore } from './message-channel.js';

export { MessageChannel };

export class SessionReplica {
  readonly pool = new EndpointPool();
  readonly limit;
  readonly flow;
  readonly shared;
  readonly running = new Map<string, Lease>();
  private readonly clock: ManualClock;

  constructor(
    clock: ManualClock,
    connection: Connection | Store,
    limits: SessionLimitOptions,
    options: Partial<SharedSessionsOptions> = {},
  ) {
    this.clock = clock;
    for (const id of ['a', 'b']) this.pool.add(id);
    this.limit = sessionLimit(limits);
    this.shared = sharedSessions('run' in connection ? connection : messageStore(connection), this.limit, {
      name: 'chat',
      clock,
      ...options,
    });
    this.flow = new FlowController({
      clock,
      pool: this.pool,
      maxConcurrency: 1_000,
      constraints: [this.limit],
      defaultRequestTtl: 0,
    });
  }

  /** A turn of `session`; its lease is under `name` while it runs. */
  send(session: string, name = session, tokens = 0): void {
    void this.flow
      .enqueue({ byteSize: 1, tokens, sessionId: session } as never, { fairnessId: 'tenant', priority: 0 })
      .then((outcome) => {
        if (outcome.type === 'Dispatched') this.running.set(name, outcome.lease);
      });
  }

  end(name: string, isLast = false): void {
    const lease = this.running.get(name);
    this.running.delete(name);
    if (isLast) lease?.endSession();
    lease?.release();
  }

  where(name: string): string | undefined {
    return this.running.get(name)?.endpoint?.id;
  }

  tokensAt(id: string): number {
    return this.limit.tokensAt(this.pool.get(id)!, this.clock.now());
  }

  /** Sessions that are resident, and those of them from elsewhere. */
  get resident(): [all: number, elsewhere: number] {
    const { resident, elsewhere } = this.limit.sessions([], this.clock.now());
    return [resident, elsewhere ?? -1];
  }
}
