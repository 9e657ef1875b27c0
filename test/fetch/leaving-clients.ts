/**
 * Clients of every SDK that leave in every phase of a request, over real sockets, with seats and quotas before the
 * server. What is random comes from a seed; when something happens does not.
 */
import { seededRandom } from '../../src/base/seeded-random.js';
import { type FetchRequest, flowFetch } from '../../src/fetch/index.js';
import { FlowController, type FlowStats, inFlightEviction, quotaDetector } from '../../src/index.js';
import { audit } from '../../src/testing/index.js';
import { until } from '../integration/support/until.js';
import { collectGarbage } from '../support/collect-garbage.js';
import { type Behaviour, hang, refuse, sendText, serve, stall, startBareModelServer } from './bare-model-server.js';
import { clients, type ModelClient } from './clients.js';

/** What the server does; `/standard/stall/v1/chat/completions` asks for one of them. */
const behaviours: Readonly<Record<string, Behaviour>> = {
  serve,
  stall,
  hang,
  refuse: refuse(429, { 'retry-after': '0' }),
  break(asked) {
    stall(asked);
    sendText(asked, 'v');
    setTimeout(() => asked.res.destroy(), 1);
  },
};
const priorities: Readonly<Record<string, number>> = { premium: 1, standard: 0, batch: -1 };

interface Leaving {
  readonly client: ModelClient;
  readonly random: () => number;
}

const later = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

async function read(pieces: AsyncIterable<string>): Promise<void> {
  for await (const _ of pieces);
}

/** A phase: what the server does meanwhile, and what the client does. Whatever a client throws is part of it. */
const phases: Readonly<
  Record<string, readonly [behaviour: keyof typeof behaviours, play: (leaving: Leaving) => Promise<unknown>]>
> = {
  'has its answer in one piece': ['serve', ({ client }) => client.complete()],
  'has read its stream': ['serve', ({ client }) => read(client.stream())],
  'has gone before it asked': ['serve', ({ client }) => client.complete(AbortSignal.abort())],
  'goes at any moment': [
    'serve',
    async ({ client, random }) => {
      const abort = new AbortController();
      const call = Promise.allSettled([
        random() < 0.5 ? client.complete(abort.signal) : read(client.stream(abort.signal)),
      ]);
      await later(random() * 8);
      abort.abort();
      await call;
    },
  ],
  'goes while it waits for the head': [
    'hang',
    async ({ client, random }) => {
      const abort = new AbortController();
      const call = Promise.allSettled([client.complete(abort.signal)]);
      await later(5 + random() * 20);
      abort.abort();
      await call;
    },
  ],
  'goes while it reads a stream': [
    'stall',
    async ({ client }) => {
      const abort = new AbortController();
      for await (const piece of client.stream(abort.signal)) if (piece === 'ser') abort.abort();
    },
  ],
  'leaves the loop over a stream': [
    'stall',
    async ({ client }) => {
      for await (const piece of client.stream()) if (piece === 'ser') break;
    },
  ],
  'forgets its answer': ['stall', ({ client }) => client.forget()],
  'sees its stream break off': ['break', ({ client }) => read(client.stream())],
  'is refused upstream': ['refuse', ({ client }) => client.complete()],
};

export interface LeavingOptions {
  readonly requests: number;
  readonly seed?: number;
  /** Clients at a time. @default 96 */
  readonly concurrency?: number;
  readonly onProgress?: (done: number) => void;
}

/** What is left when all have gone, and what happened on the way. */
export interface LeavingResult {
  readonly stats: FlowStats;
  /** Of all quotas. */
  readonly reserved: number;
  readonly violations: readonly string[];
  /** Answers that were collected unread. */
  readonly unread: number;
  /** How often each phase was played, and how many of these the client saw fail. */
  readonly played: Readonly<Record<string, { readonly count: number; readonly failed: number }>>;
  /** Requests that reached the server, and those of them that it saw leave. */
  readonly asked: number;
  readonly left: number;
}

export async function playLeavingClients({
  requests,
  seed = 1,
  concurrency = 96,
  onProgress,
}: LeavingOptions): Promise<LeavingResult> {
  const random = seededRandom(seed);
  let asked = 0;
  let left = 0;
  const server = await startBareModelServer((each) => {
    asked++;
    server.asked.length = 0;
    each.res.on('close', () => {
      if (!each.res.writableFinished) left++;
    });
    const [, , behaviour = ''] = each.path.split('/');
    behaviours[behaviour]?.(each);
  });
  const unlimited = 1e12;
  const quotas = quotaDetector({
    cooldown: 1,
    maxCooldown: 5,
    groups: [
      {
        quotas: [
          { unit: 'requests', limit: unlimited, window: 'sliding' },
          { unit: 'tokens', limit: unlimited },
        ],
      },
    ],
  });
  const flow = new FlowController<FetchRequest>({
    maxConcurrency: 32,
    constraints: [quotas],
    eviction: inFlightEviction(),
    defaultRequestTtl: '60s',
  });
  // Those that read on behind the caller's back are stopped by time.
  const fetch = flowFetch(flow, {
    timeouts: { idle: 250 },
    classify: ({ url }) => {
      const [priority = ''] = new URL(url).pathname.split('/').slice(1);
      return { fairnessId: priority, priority: priorities[priority] ?? 0 };
    },
  });
  const made = new Map<string, ModelClient>();
  const clientOf = (index: number, path: string): ModelClient => {
    const key = `${index} ${path}`;
    const known = made.get(key);
    if (known !== undefined) return known;
    const client = (clients[index] as (typeof clients)[number])[1]({ url: `${server.url}/${path}`, fetch });
    made.set(key, client);
    return client;
  };
  const names = Object.keys(phases);
  const played = Object.fromEntries(names.map((name) => [name, { count: 0, failed: 0 }]));
  let begun = 0;
  let done = 0;

  async function one(): Promise<void> {
    const name = names[Math.floor(random() * names.length)] as string;
    const [behaviour, play] = phases[name] as (typeof phases)[string];
    const priority = Object.keys(priorities)[Math.floor(random() * 3)] as string;
    const client = clientOf(Math.floor(random() * clients.length), `${priority}/${behaviour}`);
    const tally = played[name]!;
    tally.count++;
    try {
      await play({ client, random });
    } catch {
      tally.failed++;
    }
  }

  async function worker(): Promise<void> {
    while (begun < requests) {
      begun++;
      await one();
      done++;
      onProgress?.(done);
    }
  }

  const collector = setInterval(collectGarbage, 2000);
  // A client may leave a promise of its own behind that nobody hears of: LangChain and the AI SDK do when a stream is
  // left.
  const stray = (): void => {};
  process.on('unhandledRejection', stray);
  try {
    await Promise.all(Array.from({ length: concurrency }, worker));
    await until('every seat came back', () => flow.stats().inFlight === 0 && flow.stats().waiting === 0);
    const { quotas: figures } = quotas.quotas(performance.now());
    return {
      stats: flow.stats(),
      reserved: figures.reduce((sum, { reserved }) => sum + reserved, 0),
      violations: audit(flow).violations,
      unread: fetch.counts.unread,
      played,
      asked,
      left,
    };
  } finally {
    clearInterval(collector);
    process.off('unhandledRejection', stray);
    server.close();
    await flow.close();
  }
}
