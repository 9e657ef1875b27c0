/** What a machine says to the store covers what its workers may use, whether or not they still call. */
import { expect, it } from 'vitest';
import { FlowController } from '../../../src/index.js';
import { localStore, machineStore, type Store, sharedConcurrency } from '../../../src/redis/index.js';
import { ManualClock } from '../../../src/testing/index.js';

const seats = 8;
const spans = { refreshInterval: 1_000, leaseDuration: 20_000, drainDuration: 0 };
const ofWorkers = { refreshInterval: 100, leaseDuration: 10_000 };

/** An idle worker and one that is cut off from its primary with a part of the seats; then another machine wants all. */
async function world() {
  const clock = new ManualClock();
  const options = { pool: 'chat', clock, random: () => 0.5, ...spans, maxConcurrency: seats };
  const cut = { machine: false, worker: false };
  const store = localStore({ clock });
  const wire = (to: Store, from: keyof typeof cut): Store => ({
    ...to,
    run: (...call) => (cut[from] ? Promise.reject(new Error('no answer')) : to.run(...call)),
  });

  async function pass(ms: number): Promise<void> {
    for (let gone = 0; gone < ms; gone += 50) {
      clock.advance(50);
      for (let turn = 0; turn < 30; turn++) await undefined;
    }
  }

  function replica(to: Store, own: Partial<typeof spans> = {}) {
    const shared = sharedConcurrency(to, { ...options, ...own });
    const flow = new FlowController({ saturationDetector: shared, clock, defaultRequestTtl: 0 });
    shared.attach(flow);
    const want = (count: number): void => {
      for (let each = 0; each < count; each++) void flow.enqueue({ byteSize: 1 }, { fairnessId: 'all', priority: 0 });
    };
    return { want, running: () => flow.stats().inFlight };
  }

  const machine = machineStore(wire(store, 'machine'), options);
  replica(machine, ofWorkers);
  const silent = replica(wire(machine, 'worker'), ofWorkers);
  silent.want(1);
  await pass(8_000);
  cut.worker = true;
  const other = replica(store);
  other.want(seats);
  return { cut, pass, silent, other };
}

it('a worker that fell silent may use its grant: no other machine gets it before the lease is over', async () => {
  const { pass, silent, other } = await world();
  await pass(3_000);
  silent.want(seats);
  expect(silent.running()).toBeGreaterThan(1);
  expect(other.running()).toBeGreaterThan(0);
  expect(silent.running() + other.running()).toBeLessThanOrEqual(seats);
});

it('a worker that fell silent goes on with its safe share, also when its machine is cut off after it', async () => {
  const { cut, pass, silent, other } = await world();
  await pass(15_000);
  cut.machine = true;
  await pass(60_000);
  silent.want(seats);
  expect(silent.running()).toBeGreaterThan(1);
  expect(silent.running() + other.running()).toBeLessThanOrEqual(seats);
});
