/**
 * A replica of the gateway in a process of its own. It tells the observer of every seat before the work begins, and
 * gives none back before the observer has noted it: what the observer counts was in flight for certain.
 */
import { Redis as IoRedis } from 'ioredis';
import { Redis as IoValkey } from 'iovalkey';
import { createClient } from 'redis';
import { seededRandom } from '../../../src/base/seeded-random.js';
import { EndpointPool, FlowController } from '../../../src/index.js';
import {
  type IoRedisClient,
  type LeasedDetector,
  type NodeRedisClient,
  type RedisClient,
  sharedConcurrency,
  sharedEndpointConcurrency,
  sharedQuotas,
} from '../../../src/redis/index.js';
import { withoutStepFive } from '../support/control.js';
import { withShiftedClock } from '../support/shifted-clock.js';
import { type Counter, mostTokens, type Order, type ReachedState, type ReplicaPlan, type Report } from './messages.js';

/** The part in one pool: a client, a detector and a controller of its own. */
interface Part {
  readonly shared: LeasedDetector;
  readonly flow: FlowController;
  readonly end: () => void;
  readonly counterOfEndpoint: (endpoint: string | undefined) => Counter;
  /** Tokens of a request; 0 where requests are counted. */
  readonly mostTokens: number;
  asking: number;
}

interface Taking {
  readonly run: number;
  readonly parts: readonly Part[];
  readonly random: () => number;
  readonly longestMs: number;
  readonly problems: Set<string>;
  readonly reached: Set<ReachedState>;
}

let taking: Taking | undefined;
let wanted = 0;
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
    const node = createClient({
      url: `redis://127.0.0.1:${port}`,
      socket: { reconnectStrategy: 50 },
      disableOfflineQueue: true,
    });
    node.on('error', () => {});
    node.connect().catch(() => {});
    return { client: node, end: () => node.destroy() };
  }
  const options = {
    port,
    host: '127.0.0.1',
    retryStrategy: () => 50,
    enableOfflineQueue: false,
    enableReadyCheck: false,
  };
  const io = client === 'ioredis' ? new IoRedis(options) : new IoValkey(options);
  io.on('error', () => {});
  return { client: io, end: () => io.disconnect() };
}

/** The same client, with a changed script. */
function changed(client: RedisClient, edit: (text: string) => string): RedisClient {
  const missing = (): Promise<never> => Promise.reject(new Error('NOSCRIPT'));
  if ('evalSha' in client) {
    return {
      evalSha: missing,
      eval: (text, options) => client.eval(edit(text), options),
    } satisfies NodeRedisClient;
  }
  return {
    evalsha: missing,
    eval: (text, ...rest) => client.eval(edit(text), ...rest),
  } satisfies IoRedisClient;
}

/** A connection for one part, with the script that the plan says. */
function connectFor(plan: ReplicaPlan, counter: Counter): { client: RedisClient; end: () => void } {
  const { client, end } = connect(plan);
  if (plan.script === 'on a shifted clock') return { client: changed(client, withShiftedClock), end };
  if (plan.script === 'without step five' && counter === 'requests')
    return { client: changed(client, withoutStepFive), end };
  return { client, end };
}

function join(run: number, plan: ReplicaPlan): void {
  Date.now = () => trueNow() + plan.skewMs;
  const random = seededRandom(plan.seed);
  const problems = new Set<string>();
  const reached = new Set<ReachedState>();
  const parts = [requestsPart(plan, random), tokensPart(plan, random), endpointsPart(plan, random)];
  for (const { shared, flow, counterOfEndpoint } of parts) {
    shared.attach(flow);
    shared.on('problem', ({ message }) => problems.add(message));
    shared.on('expired', () => reached.add('a lease ends without an answer'));
    shared.on('recovered', () => reached.add('a lease is granted again after its end'));
    shared.on('epoch', () => reached.add('the store begins anew under a replica'));
    shared.on('breaker', ({ isOpen }) => isOpen && reached.add('a replica stops asking a store that does not answer'));
    shared.on('granted', ({ grant, before }) => reached.add(`a share ${grant > before ? 'grows' : 'becomes smaller'}`));
    const tellCaps = (): void => {
      const caps = shared.status.map(({ endpoint, cap }) => [counterOfEndpoint(endpoint), cap]);
      tell({ type: 'caps', run, caps: Object.fromEntries(caps) });
    };
    for (const event of ['granted', 'expired', 'recovered'] as const) shared.on(event, tellCaps);
  }
  taking = { run, parts, random, longestMs: plan.longestMs, problems, reached };
  tell({ type: 'joined', run });
  askForMore();
  if (plan.quota !== undefined) void spend(taking, plan, plan.quota);
}

function optionsOf(plan: ReplicaPlan, pool: string, random: () => number) {
  const { refreshMs, leaseMs, drainMs, forgetMs, callTimeoutMs, name, replicas } = plan;
  return {
    pool,
    replica: name,
    replicas,
    refreshInterval: refreshMs,
    leaseDuration: leaseMs,
    drainDuration: drainMs,
    forgetAfter: forgetMs,
    callTimeout: callTimeoutMs,
    random,
  };
}

/** Spends a quota as fast as there is room. */
async function spend(self: Taking, plan: ReplicaPlan, quota: NonNullable<ReplicaPlan['quota']>): Promise<void> {
  const { run, random } = self;
  const { client, end } = connect(plan);
  // Answers are late, and none is missed: who misses one spends a share of its own.
  const callTimeout = 20 * plan.callTimeoutMs;
  const quotas = sharedQuotas(client, { name: plan.pool, replicas: quota.replicas, callTimeout });
  const { perMinute: limit, burst } = quota;
  const window = quotas.window({ key: 'tokens', limit, perMs: 60_000, burst, onRoom: () => {} });
  while (taking === self) {
    const tokens = 1 + Math.floor(random() * quota.largest);
    const nowMs = performance.now();
    if (window.roomAtMs(tokens, nowMs) > nowMs) window.wants?.(tokens, nowMs);
    else {
      window.take(tokens, nowMs);
      tell({ type: 'spend', run, atMs: performance.timeOrigin + nowMs, amount: tokens });
    }
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  await quotas.close();
  end();
}

function requestsPart(plan: ReplicaPlan, random: () => number): Part {
  const { client, end } = connectFor(plan, 'requests');
  const options = { ...optionsOf(plan, `${plan.pool}-requests`, random), maxConcurrency: plan.limits.requests };
  const shared = sharedConcurrency(client, options);
  const flow = new FlowController({ saturationDetector: shared, defaultRequestTtl: 0 });
  return { shared, flow, end, counterOfEndpoint: () => 'requests', mostTokens: 0, asking: 0 };
}

function tokensPart(plan: ReplicaPlan, random: () => number): Part {
  const { client, end } = connectFor(plan, 'tokens');
  const shared = sharedConcurrency(client, {
    ...optionsOf(plan, `${plan.pool}-tokens`, random),
    maxTokens: plan.limits.tokens,
  });
  const flow = new FlowController({ saturationDetector: shared, defaultRequestTtl: 0 });
  return { shared, flow, end, counterOfEndpoint: () => 'tokens', mostTokens, asking: 0 };
}

/** Two endpoints; one of weight 2. */
function endpointsPart(plan: ReplicaPlan, random: () => number): Part {
  const { client, end } = connectFor(plan, 'endpoint a');
  const options = { ...optionsOf(plan, `${plan.pool}-endpoints`, random), maxConcurrency: plan.limits['endpoint a'] };
  const shared = sharedEndpointConcurrency(client, options);
  const pool = new EndpointPool();
  pool.add('a');
  pool.add('b', { weight: plan.limits['endpoint b'] / plan.limits['endpoint a'] });
  const flow = new FlowController({ saturationDetector: shared, pool, headroom: 'required', defaultRequestTtl: 0 });
  return {
    shared,
    flow,
    end,
    counterOfEndpoint: (endpoint) => (endpoint === 'a' ? 'endpoint a' : 'endpoint b'),
    mostTokens: 0,
    asking: 0,
  };
}

function askForMore(): void {
  const now = taking;
  for (const part of now?.parts ?? []) {
    while (now !== undefined && part.asking < wanted) {
      part.asking++;
      void request(now, part).finally(() => {
        part.asking--;
        askForMore();
      });
    }
  }
}

async function request(
  { run, random, longestMs }: Taking,
  { flow, counterOfEndpoint, mostTokens: most }: Part,
): Promise<void> {
  const tokens = most === 0 ? 0 : 1 + Math.floor(random() * most);
  const outcome = await flow.enqueue({ byteSize: 1, tokens }, { fairnessId: 'all', priority: 0 });
  if (outcome.type !== 'Dispatched') return;
  const id = ++lastId;
  const counter = counterOfEndpoint(outcome.lease.endpoint?.id);
  const forMs = Math.ceil(longestMs * (0.1 + 0.9 * random()));
  await told({ type: 'take', run, id, forMs, counter, amount: Math.max(1, tokens) });
  await new Promise((resolve) => setTimeout(resolve, forMs));
  await told({ type: 'give', run, id });
  outcome.lease.release();
}

async function leave(): Promise<void> {
  const now = taking;
  taking = undefined;
  wanted = 0;
  if (now === undefined) return;
  for (const { flow, shared, end } of now.parts) {
    await flow.close();
    await shared.close();
    end();
  }
  tell({ type: 'left', run: now.run, problems: [...now.problems], reached: [...now.reached] });
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
