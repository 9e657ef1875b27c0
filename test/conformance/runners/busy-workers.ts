/**
 * Dynamo's rejection by busy workers: a pool that reports ranks, the detector of busy thresholds, and the endpoint that
 * moves them.
 */
import { expect } from 'vitest';
import { busyThresholdHandler } from '../../../src/adapters/http/index.js';
import { busyThresholdDetector, EndpointPool, FlowConfigError } from '../../../src/index.js';
import type { BusyThresholds, RankLoad } from '../../../src/types/index.js';
import { Rig } from '../support/rig.js';
import { type Runners, runner, unknownWord } from '../support/runner.js';
import type { Vector } from '../support/vectors.js';

/** Keys of the vector files that only describe a vector. */
const about = ['id', 'component', 'source', 'note', 'profile', 'defect'] as const;
type About = { readonly [K in (typeof about)[number]]?: string };

type Nullable<T> = { readonly [K in keyof T]?: T[K] | null };

/** Null: not known. */
function known<T extends object>(figures: Nullable<T>): { [K in keyof T]?: NonNullable<T[K]> } {
  return Object.fromEntries(Object.entries(figures).filter(([, figure]) => figure !== null)) as {
    [K in keyof T]?: NonNullable<T[K]>;
  };
}

/** A pool that hears one report after the other, in the shape of Dynamo's events. */
class Workers {
  readonly pool: EndpointPool = new EndpointPool();
  private atMs = 0;

  report(id: string, ranks: readonly Nullable<RankLoad>[]): void {
    if (this.pool.get(id) === undefined) this.pool.add(id);
    this.pool.report(id, { waitingQueueSize: 0, runningRequests: 0, kvCacheUsage: 0, sampledAtMs: this.atMs++, ranks });
  }

  /** Leaves the figures of the other ranks as they are. */
  reportRank(id: string, index: number, load: RankLoad): void {
    const count = Math.max(this.pool.get(id)?.metrics?.ranks?.length ?? 0, index + 1);
    this.report(
      id,
      Array.from({ length: count }, (_, each) => (each === index ? load : {})),
    );
  }

  busy(detector: ReturnType<typeof busyThresholdDetector>): number[] {
    const busy = this.pool.endpoints.filter((endpoint) => detector.isBusy(endpoint));
    return busy.map(({ id }) => Number(id)).sort((a, b) => a - b);
  }
}

interface Overload extends About {
  config: Nullable<BusyThresholds>;
  ranks: Readonly<Record<string, Nullable<RankLoad>>>;
  declaredRanks: readonly number[] | null;
  overloaded: boolean;
}

interface Step extends Nullable<RankLoad>, Nullable<BusyThresholds> {
  op: string;
  dpRank?: number;
  startRank?: number;
  size?: number;
  totalKvBlocks?: number;
  accepted?: boolean;
  overloaded?: boolean;
}

interface Scaling {
  readonly input: number;
  readonly stored: number;
  readonly effective: number;
}

interface SetStep {
  op: string;
  worker?: number;
  workers?: readonly number[];
  overloaded?: boolean;
  changed?: boolean;
}

const busyRank: RankLoad = { activePrefillTokens: 2 };
const freeRank: RankLoad = { activePrefillTokens: 0 };

function numberOf(value: unknown): unknown {
  return value === 'NaN' || value === 'Infinity' ? Number(value) : value;
}

function playSequence(vector: Vector<{ config: Nullable<BusyThresholds>; steps: readonly Step[] }>): void {
  const workers = new Workers();
  const detector = busyThresholdDetector(known(vector.input.config));
  for (const step of vector.input.steps) {
    const {
      op,
      dpRank = 0,
      activeDecodeBlocks,
      kvUsedBlocks,
      activePrefillTokens,
      totalBlocks,
      maxNumBatchedTokens,
    } = step;
    if (op === 'check') expect(workers.busy(detector).length > 0, JSON.stringify(step)).toBe(step.overloaded);
    else if (op === 'load') {
      workers.reportRank('0', dpRank, known({ activeDecodeBlocks, kvUsedBlocks, activePrefillTokens }));
      expect(step.accepted).toBe(true);
    } else if (op === 'totalBlocks') workers.reportRank('0', dpRank, known({ totalBlocks }));
    else if (op === 'runtimeConfig') {
      // Capacities that the engine does not name are not known any more.
      const { startRank = 0, size = 0 } = step;
      const rank = { totalBlocks: step.totalKvBlocks ?? null, maxNumBatchedTokens: maxNumBatchedTokens ?? null };
      workers.report(
        '0',
        Array.from({ length: startRank + size }, (_, each) => (each < startRank ? {} : rank)),
      );
    } else if (op === 'thresholds') {
      const { activeDecodeBlocksThreshold, activePrefillTokensThreshold, activePrefillTokensThresholdFrac } = step;
      detector.update({ activeDecodeBlocksThreshold, activePrefillTokensThreshold, activePrefillTokensThresholdFrac });
    } else throw unknownWord(vector, op);
  }
}

export const busyWorkerRunners: Runners = {
  'worker-overload': runner<Overload, object>(
    { input: [...about, 'config', 'ranks', 'declaredRanks', 'overloaded'], expect: [] },
    ({ input: { config, ranks, declaredRanks, overloaded } }) => {
      const workers = new Workers();
      const indexes = declaredRanks ?? Object.keys(ranks).map(Number);
      workers.report(
        '0',
        indexes.map((index) => known(ranks[index] ?? {})),
      );
      expect(workers.busy(busyThresholdDetector(known(config))).length > 0).toBe(overloaded);
    },
  ),

  'worker-overload-sequence': runner<About & { config: Nullable<BusyThresholds>; steps: readonly Step[] }, object>(
    { input: [...about, 'config', 'steps'], expect: [] },
    playSequence,
  ),

  /** The set is not kept: it is what the detector says of the pool. */
  'overloaded-set': runner<
    About & {
      steps?: readonly SetStep[];
      config?: Nullable<BusyThresholds>;
      workers?: Readonly<Record<string, Readonly<Record<string, Nullable<RankLoad>>>>>;
      overloadedWorkers?: readonly number[];
    },
    object
  >({ input: [...about, 'steps', 'config', 'workers', 'overloadedWorkers'], expect: [] }, (vector) => {
    const {
      steps = [],
      config = { activePrefillTokensThreshold: 1 },
      workers: reported = {},
      overloadedWorkers = [],
    } = vector.input;
    const workers = new Workers();
    const detector = busyThresholdDetector(known(config));
    for (const [id, ranks] of Object.entries(reported)) workers.report(id, Object.values(ranks).map(known));
    expect(workers.busy(detector)).toEqual(overloadedWorkers);
    for (const { op, worker, workers: listed = [], overloaded, changed } of steps) {
      const before = workers.busy(detector);
      if (op === 'update') workers.report(String(worker), [overloaded === true ? busyRank : freeRank]);
      else if (op === 'replace') {
        for (const id of before) if (!listed.includes(id)) workers.report(String(id), [freeRank]);
        for (const id of listed) workers.report(String(id), [busyRank]);
      } else if (op === 'removeWorkers') for (const id of listed) workers.pool.remove(String(id));
      else if (op === 'expect') expect(before).toEqual(listed);
      else throw unknownWord(vector, op);
      if (changed !== undefined)
        expect(JSON.stringify(workers.busy(detector)) !== JSON.stringify(before)).toBe(changed);
    }
  }),

  /**
   * Instances that are down are no members of the pool. What would be refused there waits here, for as long as its
   * budget lasts.
   */
  'routing-availability': runner<
    About & {
      config: Readonly<Record<'discovered' | 'down' | 'overloaded', readonly number[]>>;
      routable: readonly number[];
      free: readonly number[];
      result: string;
    },
    object
  >(
    { input: [...about, 'config', 'routable', 'free', 'result'], expect: [] },
    async ({ input: { config, routable, free, result } }) => {
      const saturationDetector = busyThresholdDetector({ activePrefillTokensThreshold: 1 });
      const rig = new Rig({ saturationDetector, defaultRequestTtl: 1000 }, { endpoints: 0 });
      for (const id of config.discovered) if (!config.down.includes(id)) rig.pool.add(String(id));
      for (const { id } of rig.pool.endpoints) {
        const ranks = [config.overloaded.includes(Number(id)) ? busyRank : freeRank];
        rig.pool.report(id, { waitingQueueSize: 0, runningRequests: 0, kvCacheUsage: 0, ranks });
      }
      const sorted = (ids: readonly { readonly id: string }[]): number[] =>
        ids.map(({ id }) => Number(id)).sort((a, b) => a - b);
      expect(sorted(rig.pool.endpoints)).toEqual(routable);
      expect(sorted(rig.pool.endpoints.filter((endpoint) => !saturationDetector.isBusy(endpoint)))).toEqual(free);
      const ticket = rig.enqueue();
      rig.clock.advance(2000);
      const results: Readonly<Record<string, string>> = {
        Dispatched: 'route',
        EvictedTTL: 'reject-overloaded',
        EvictedNoEndpoints: 'reject-unavailable',
      };
      expect(results[ticket.state ?? '']).toBe(result);
      if (result === 'route') expect(free).toContain(Number(ticket.lease?.endpoint?.id));
    },
  ),

  /** Nothing is stored but the threshold itself. */
  'threshold-scaling': runner<About & { cases: readonly Scaling[] }, { effective?: readonly number[] }>(
    { input: [...about, 'cases'], expect: ['effective'] },
    ({ input, expect: { effective = input.cases.map((each) => each.effective) } }) => {
      const found = input.cases.map(
        (each) =>
          busyThresholdDetector({ activeDecodeBlocksThreshold: each.input }).thresholds.activeDecodeBlocksThreshold,
      );
      expect(found).toEqual(effective);
    },
  ),

  'threshold-validation': runner<
    About & { cases: readonly (Readonly<Record<string, unknown>> & { valid: boolean })[] },
    object
  >({ input: [...about, 'cases'], expect: [] }, ({ input }) => {
    for (const { valid, ...thresholds } of input.cases) {
      const options = Object.fromEntries(Object.entries(thresholds).map(([name, value]) => [name, numberOf(value)]));
      const make = (): unknown => busyThresholdDetector(options);
      if (valid) expect(make).not.toThrow();
      else expect(make).toThrow(FlowConfigError);
    }
  }),

  'threshold-update': runner<
    About & { steps: readonly { op: string; body?: object; status: number; response?: object }[] },
    object
  >({ input: [...about, 'steps'], expect: [] }, async ({ input }) => {
    const handle = busyThresholdHandler({ models: { m: busyThresholdDetector() }, authorize: () => true });
    for (const { op, body, status, response } of input.steps) {
      const headers = { 'content-type': 'application/json' };
      const answer = await handle({
        method: op.toUpperCase(),
        headers,
        body: body === undefined ? '' : JSON.stringify(body),
      });
      expect(answer.status, JSON.stringify(body)).toBe(status);
      if (response !== undefined) expect(JSON.parse(answer.body)).toEqual(response);
      else expect(JSON.parse(answer.body)).toEqual({ error: expect.any(String) });
    }
  }),
};
