/**
 * Replicas of one pool in this process, each with more to do than it may: how many requests all of them have in flight
 * is counted exactly.
 *
 * Demand is the same all the time, so that every replica's share stays what it is: calls that a new master has not
 * heard of changed nothing. No write that is lost can raise the sum of the shares, and the bound is the limit itself,
 * however slow the machine.
 */
import { FlowController } from '../../../src/index.js';
import {
  type RedisClient,
  type SharedConcurrency,
  type StoreProblem,
  sharedConcurrency,
} from '../../../src/redis/index.js';
import { until } from '../support/with-store.js';

const serviceMs = 10;
/** Longer than any test: what a silent replica has is kept for it. */
const drainDuration = '10m';

export class SharedLoad {
  /** The most that was in flight at any moment. */
  most = 0;
  dispatched = 0;
  readonly problems: StoreProblem[] = [];
  readonly replicas: SharedConcurrency[] = [];
  private readonly flows: FlowController[] = [];
  private readonly pool: string;
  private readonly limit: number;
  private inFlight = 0;
  private isOver = false;

  constructor(pool: string, limit: number) {
    this.pool = pool;
    this.limit = limit;
  }

  /** The key of its leases. */
  get key(): string {
    return `headgate:{${this.pool}}:lease`;
  }

  add(client: RedisClient): void {
    const { pool, limit } = this;
    const shared = sharedConcurrency(client, {
      pool,
      maxConcurrency: limit,
      refreshInterval: '100ms',
      leaseDuration: '1s',
      callTimeout: '500ms',
      drainDuration,
    });
    shared.on('problem', (problem) => this.problems.push(problem));
    const flow = new FlowController({ saturationDetector: shared, defaultRequestTtl: 0 });
    shared.attach(flow);
    this.replicas.push(shared);
    this.flows.push(flow);
    for (let i = 0; i < 2 * limit; i++) void this.ask(flow);
  }

  /** Resolves when every replica has its part of the whole limit, by an answer that is in force, and uses it. */
  async settled(): Promise<void> {
    const { replicas, limit } = this;
    const part = Math.floor(limit / replicas.length);
    await until(
      () =>
        replicas.every(
          ({ limit: share, status }) => share === part && status[0]?.isExpired === false && status[0].held === limit,
        ),
      () => this.figures(),
      120_000,
    );
  }

  /** Resolves when every replica was answered by a store that it called from now on. */
  async answered(): Promise<void> {
    const before = this.replicas.map(({ status }) => status[0]!.store.calls);
    const isAnswered = ({ status }: SharedConcurrency, index: number): boolean => {
      const { store, isExpired } = status[0]!;
      return store.calls > before[index]! + 1 && store.problem === undefined && !isExpired;
    };
    await until(
      () => this.replicas.every(isAnswered),
      () => this.figures(),
      120_000,
    );
  }

  /** Resolves when so many requests more have gone out. */
  async goesOn(requests: number): Promise<void> {
    const from = this.dispatched;
    await until(
      () => this.dispatched >= from + requests,
      () => this.figures(),
      120_000,
    );
  }

  figures(): unknown {
    return {
      most: this.most,
      dispatched: this.dispatched,
      replicas: this.replicas.map(({ status }) => status[0]),
      problems: this.problems,
    };
  }

  async close(): Promise<void> {
    this.isOver = true;
    await Promise.all(this.flows.map((flow) => flow.close()));
    await Promise.all(this.replicas.map((replica) => replica.close()));
  }

  private async ask(flow: FlowController): Promise<void> {
    while (!this.isOver) {
      const outcome = await flow.enqueue({ byteSize: 1 }, { fairnessId: 'all', priority: 0 });
      if (outcome.type !== 'Dispatched') return;
      this.inFlight++;
      this.dispatched++;
      this.most = Math.max(this.most, this.inFlight);
      await new Promise((resolve) => setTimeout(resolve, serviceMs));
      this.inFlight--;
      outcome.lease.release();
    }
  }
}
