/**
 * A replica of the gateway in a process of its own. It tells the observer of every seat before the work begins, and gives none back before
 * the observer has noted it: what the observer counts was in flight for certain.
 */
import { Redis as IoRedis } from 'ioredis';
import { Redis as IoValkey } from 'iovalkey';
import { createClient } from 'redis';
import { seededRandom } from '../../../src/base/seeded-random.js';
import { FlowController } from '../../../src/index.js';
import {
  type IoRedisClient,
  type NodeRedisClient,
  type RedisClient,
  type SharedConcurrency,
  sharedConcurrency,
} from '../../../src/redis/index.js';
import { withoutStepFive } from '../support/control.js';
import type { Order, ReplicaPlan, Report } from './messages.js';

interface Taking {
  readonly run: number;
  readonly shared: SharedConcurrency;
  readonly flow: FlowController;
  readonly random: () => number;
  readonly longestMs: number;
  readonly problems: Set<string>;
  readonly end: () => void;
}

let taking: Taking | undefined;
let wanted = 0;
let asking = 0;
let lastId = 0;
const noted = new Map<number, () => void>();
const trueNow = Date.now;

function tell(report: Report): void {
  process.send?.(report);
}

function told(report: Report & { readonly id: number }): Promise<void> {
  return new Promise((resolve) => {
    noted.set(report.id, resolve);
    tell(report);
  });
}

function connect({ client, port }: ReplicaPlan): { client: RedisClient; end: () => void } {
  if (client === 'redis') {
    const node = createClient({ url: `redis://127.0.0.1:${port}`, socket: { reconnectStrategy: 50 }, disableOfflineQueue: true });
    node.on('error', () => {});
    node.connect().catch(() => {});
    return { client: node, end: () => node.destroy() };
  }
  const options = { port, host: '127.0.0.1', retryStrategy: () => 50, enableOfflineQueue: false, enableReadyCheck: false };
  const io = client === 'ioredis' ? new IoRedis(options) : new IoValkey(options);
  io.on('error', () => {});
  return { client: io, end: () => io.disconnect() };
}

/** The same client, with a changed script. */
function changed(client: RedisClient): RedisClient {
  const missing = (): Promise<never> => Promise.reject(new Error('NOSCRIPT'));
  if ('evalSha' in client) {
    return { evalSha: missing, eval: (text, options) => client.eval(withoutStepFive(text), options) } satisfies NodeRedisClient;
  }
  return { evalsha: missing, eval: (text, ...rest) => client.eval(withoutStepFive(text), ...rest) } satisfies IoRedisClient;
}

function join(run: number, plan: ReplicaPlan): void {
  Date.now = () => trueNow() + plan.skewMs;
  const { client, end } = connect(plan);
  const random = seededRandom(plan.seed);
  const shared = sharedConcurrency(plan.isControl ? changed(client) : client, {
    pool: plan.pool,
    maxConcurrency: plan.limit,
    refreshInterval: plan.refreshMs,
    leaseDuration: plan.leaseMs,
    drainDuration: plan.drainMs,
    random,
  });
  const flow = new FlowController({ saturationDetector: shared, defaultRequestTtl: 0 });
  shared.attach(flow);
  const problems = new Set<string>();
  shared.on('problem', ({ message }) => problems.add(message));
  taking = { run, shared, flow, random, longestMs: plan.longestMs, problems, end };
  askForMore();
}

function askForMore(): void {
  const now = taking;
  while (now !== undefined && asking < wanted) {
    asking++;
    void request(now).finally(() => {
      asking--;
      askForMore();
    });
  }
}

async function request({ flow, run, random, longestMs }: Taking): Promise<void> {
  const outcome = await flow.enqueue({ byteSize: 1 }, { fairnessId: 'all', priority: 0 });
  if (outcome.type !== 'Dispatched') return;
  const id = ++lastId;
  const forMs = Math.ceil(longestMs * (0.1 + 0.9 * random()));
  await told({ type: 'take', run, id, forMs });
  await new Promise((resolve) => setTimeout(resolve, forMs));
  await told({ type: 'give', run, id });
  outcome.lease.release();
}

async function leave(): Promise<void> {
  const now = taking;
  taking = undefined;
  wanted = 0;
  if (now === undefined) return;
  await now.flow.close();
  await now.shared.close();
  now.end();
  tell({ type: 'left', run: now.run, problems: [...now.problems] });
}

process.on('message', (order: Order) => {
  if (order.type === 'join') join(order.run, order.plan);
  else if (order.type === 'leave') void leave();
  else if (order.type === 'demand') {
    wanted = order.requests;
    askForMore();
  } else {
    noted.get(order.id)?.();
    noted.delete(order.id);
  }
});
process.on('disconnect', () => process.exit());
