/**
 * Gateways that always have more to send than fits, in front of a simulated model server: what becomes of an adaptive
 * limit.
 */
import { FlowController, type Lease } from '../../src/index.js';
import { ManualClock } from '../../src/testing/index.js';
import type { AdaptiveDetector } from '../../src/types/index.js';
import { Random } from '../property/random.js';

/** Requests run side by side up to `slots`; the others wait in the server's own queue, first come, first served. */
class SimulatedServer {
  /** Slots in use, added up over time. */
  busySlotMs = 0;
  private running = 0;
  private changedAtMs = 0;
  private readonly waiting: (() => void)[] = [];
  slots: number;
  private readonly serviceMs: () => number;
  private readonly clock: ManualClock;

  constructor(slots: number, serviceMs: () => number, clock: ManualClock) {
    this.slots = slots;
    this.serviceMs = serviceMs;
    this.clock = clock;
  }

  serve(onEnd: () => void): void {
    if (this.running < this.slots) this.run(onEnd);
    else this.waiting.push(onEnd);
  }

  account(): void {
    this.busySlotMs += this.running * (this.clock.now() - this.changedAtMs);
    this.changedAtMs = this.clock.now();
  }

  private run(onEnd: () => void): void {
    this.account();
    this.running++;
    this.clock.setTimeout(() => {
      this.account();
      this.running--;
      const next = this.running < this.slots ? this.waiting.shift() : undefined;
      if (next !== undefined) this.run(next);
      onEnd();
    }, this.serviceMs());
  }
}

interface ClosedLoopOptions {
  /** Requests that the server works on at once. */
  slots: number;
  /** Mean service time. @default 1000 */
  meanMs?: number;
  /** Spread of the logarithm of service times; 0 is exact. @default 0 */
  sigma?: number;
  seed?: number;
  /** One gateway for each. */
  detectors: readonly AdaptiveDetector[];
  /** Requests that each gateway has, running and waiting together. @default 10 more than any limit lets go */
  clients?: number;
}

export class ClosedLoop {
  readonly clock: ManualClock = new ManualClock();
  private readonly server: SimulatedServer;

  constructor({ slots, meanMs = 1000, sigma = 0, seed = 1, detectors, clients }: ClosedLoopOptions) {
    const random = new Random(seed);
    const serviceMs = (): number => meanMs * (sigma === 0 ? 1 : Math.exp(sigma * gaussian(random) - sigma ** 2 / 2));
    this.server = new SimulatedServer(slots, serviceMs, this.clock);
    for (const detector of detectors) this.open(detector, clients);
  }

  /** Runs for `seconds`, and answers with the share of the server's slots that was in use. */
  run(seconds: number): number {
    const before = this.server.busySlotMs;
    this.clock.advance(seconds * 1000);
    this.server.account();
    return (this.server.busySlotMs - before) / (seconds * 1000 * this.server.slots);
  }

  /** Another number of slots from now on; requests that run are not cut short. */
  resize(slots: number): void {
    this.server.slots = slots;
  }

  private open(saturationDetector: AdaptiveDetector, clients: number | undefined): void {
    const gateway = new FlowController({ saturationDetector, clock: this.clock, defaultRequestTtl: 0 });
    const send = (): void => void gateway.enqueue({ byteSize: 1 }, { fairnessId: 'a', priority: 0 });
    gateway.on('dispatched', ({ lease }: { lease: Lease }) => {
      const sentAtMs = this.clock.now();
      this.server.serve(() => {
        saturationDetector.observe({ ttftMs: this.clock.now() - sentAtMs });
        lease.release();
        if (clients !== undefined) send();
      });
      if (clients === undefined) send();
    });
    for (let i = 0; i < (clients ?? 10); i++) send();
  }
}

function gaussian(random: Random): number {
  return Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next());
}
