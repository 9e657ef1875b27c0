/** Controllers for the contract suites, and what each plugin must pass: all are served, invariants hold, no fault. */
import { Listeners } from '../../base/listeners.js';
import type { FlowControllerOptions, Lease, Outcome, SaturationDetector, Usage } from '../../index.js';
import { concurrencyDetector, EndpointPool, FlowController, inFlightEviction, overviewOf } from '../../index.js';
import type { ServerAnswer } from '../../types/index.js';
import { audit } from '../audit.js';
import { ManualClock } from '../manual-clock.js';
import { expectSame, expectThat, type Promises } from './contract-case.js';
import { pluginFaults } from './plugin-faults.js';

/** A controller that runs one request at a time unless told otherwise, on a clock that the suite moves. */
export function makeFixture(options: Partial<FlowControllerOptions> = {}): {
  flow: FlowController;
  clock: ManualClock;
} {
  const clock = new ManualClock();
  const saturationDetector = concurrencyDetector({ maxConcurrency: 1 });
  return { flow: new FlowController({ saturationDetector, defaultRequestTtl: 0, clock, ...options }), clock };
}

/** A gate in the suite's hand: it opens for a number of dispatches. */
export class Valve implements SaturationDetector {
  readonly type = 'valve';
  private left = 0;
  private readonly listeners = new Listeners();
  readonly subscribe: Listeners['subscribe'] = this.listeners.subscribe;

  saturation(): number {
    return this.left > 0 ? 0 : 1;
  }

  dispatched(): void {
    this.left--;
  }

  /** Lets up to `count` requests go, now; what is left of it stays until the next call. */
  open(count: number): void {
    this.left = count;
    this.listeners.announce();
  }

  close(): void {
    this.left = 0;
  }
}

/** Lets every promise that is settled by now run its continuations. */
async function settle(): Promise<void> {
  for (let i = 0; i < 5; i++) await Promise.resolve();
}

const requests = 240;
const answer: ServerAnswer = { status: 200, headers: { 'content-type': 'application/json' } };
const priorities = [10, 0, -10, 5] as const;

/** The leases of requests that run are in `running`, in the order of dispatch. */
function withThreeEndpoints(options: Partial<FlowControllerOptions>) {
  const pool = new EndpointPool();
  for (const id of ['a', 'b', 'c']) pool.add(id);
  const running: Lease[] = [];
  const { flow, clock } = makeFixture({ pool, ...options });
  flow.on('dispatched', ({ lease }) => running.push(lease));
  return { pool, flow, clock, running };
}

/** The request number `i`, of one of several tenants and priorities. */
function enqueue(flow: FlowController, i: number): Promise<Outcome> {
  const key = { fairnessId: `tenant-${i % 7}`, priority: priorities[i % 4] as number };
  return flow.enqueue({ byteSize: i, tokens: i % 50 }, key);
}

/** Sends requests of several tenants through three endpoints: none is left, none evicted. Returns faults of plugins. */
export async function serveAll(options: Partial<FlowControllerOptions>): Promise<number> {
  const { pool, flow, clock, running } = withThreeEndpoints({
    saturationDetector: concurrencyDetector({ maxConcurrency: 4 }),
    bands: [{ priority: 10 }, { priority: 0 }, { priority: -10 }],
    ...options,
  });
  const report = (): void => {
    for (const { id } of pool.endpoints) pool.report(id, { waitingQueueSize: 0, runningRequests: 0, kvCacheUsage: 0 });
  };
  report();
  for (let i = 0; i < requests; i++) void enqueue(flow, i);
  for (let round = 0; round < 2000 && (running.length > 0 || flow.stats().waiting > 0); round++) {
    end(running.shift(), { promptTokens: round % 9, completionTokens: 3 });
    clock.advance(10);
    report();
    await settle();
    expectBalanced(flow);
  }
  const { waiting, inFlight, dispatched, rejected, evicted, pluginErrors } = flow.stats();
  const left = { waiting, inFlight, evicted, all: dispatched + rejected };
  expectSame(left, { waiting: 0, inFlight: 0, evicted: 0, all: requests }, 'in the end');
  await flow.close();
  expectBalanced(flow);
  return pluginErrors;
}

/** The same for a plugin without faults. */
export async function serveCleanly(options: Partial<FlowControllerOptions>): Promise<void> {
  expectNoFaults(await serveAll(options));
}

/** Sends requests while a plugin breaks its contract: invariants hold, and every caller gets an answer. */
async function survive(options: Partial<FlowControllerOptions>): Promise<void> {
  const { flow, clock, running } = withThreeEndpoints({ eviction: inFlightEviction(), ...options });
  let answers = 0;
  for (let i = 0; i < requests; i++) {
    void enqueue(flow, i).then(() => answers++);
    if (i % 3 === 0) end(running.shift(), { promptTokens: 7 });
    if (i % 20 === 0) {
      clock.advance(10);
      overviewOf(flow);
      expectBalanced(flow);
    }
  }
  await flow.close();
  for (const lease of running) lease.release();
  await settle();
  expectBalanced(flow);
  expectSame(answers, requests, 'callers that got an answer');
}

/** The last promise of a contract; `using` makes the options of a controller with a plugin that is `sabotaged`. */
export function survival<P extends object>(using: (plugin: P) => Partial<FlowControllerOptions>): Promises<P> {
  const promise = 'breaks no caller when every method of it answers anything, or throws';
  return { [promise]: (plugin) => survive(using(sabotaged(plugin))) };
}

/** What a contract promises of a controller with the plugin. */
export interface ControllerPromises<Method extends string> {
  /** It serves every request, without a fault. */
  readonly served: string;
  /** The method whose answers are lost, and what holds then. */
  readonly method: Method;
  readonly lost: string;
  /** The faults must be told as well. @default false */
  readonly tellsFaults?: boolean;
}

/** The last promises of a contract; `using` makes the options of a controller with plugins of that kind. */
export function ofController<P extends object, Method extends string = keyof P & string>(
  make: () => P,
  using: (make: () => P) => Partial<FlowControllerOptions>,
  { served, method, lost, tellsFaults = false }: ControllerPromises<Method>,
  broken: (plugin: P, method?: Method) => P = sabotaged,
): Promises<P> {
  return {
    [served]: () => serveCleanly(using(make)),
    async [lost]() {
      const faults = await serveAll(using(() => broken(make(), method)));
      expectThat(!tellsFaults || faults > 0, 'faults were not reported');
    },
    ...survival<P>(() => using(() => broken(make()))),
  };
}

function end(lease: Lease | undefined, usage: Partial<Usage>): void {
  lease?.answered(answer);
  lease?.report(usage);
  lease?.release();
}

export function expectBalanced(flow: FlowController): void {
  const { violations } = audit(flow);
  expectThat(violations.length === 0, `the books do not balance: ${violations.join('; ')}`);
}

/** A policy's faults are contained: a suite has to ask for them. */
export function expectNoFaults(pluginErrors: number): void {
  expectSame(pluginErrors, 0, 'faults of the plugin');
}

/** The plugin with faults: every other call of `method`, or of any method, breaks the contract instead. */
export function sabotaged<P extends object>(plugin: P, method?: string): P {
  let calls = 0;
  return new Proxy(plugin, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]): unknown => {
        const answer: unknown = Reflect.apply(value, target, args);
        if ((method !== undefined && name !== method) || calls++ % 2 === 0) return answer;
        return pluginFaults[(calls >> 1) % pluginFaults.length]?.act();
      };
    },
  });
}
