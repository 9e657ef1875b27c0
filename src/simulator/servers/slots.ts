/**
 * A server of K slots: the M/M/c, M/D/1 and M/G/c of textbooks, and any time of its own. Requests wait in the order of
 * their arrival; the first token of an answer is its end.
 */
import Denque from 'denque';
import type { SimEvent } from '../clock/virtual-clock.js';
import { type Distribution, type Random, type Sampler, samplerOf } from '../random/distributions.js';
import type { SimRequest } from '../requests/sim-request.js';
import { ModelServer, type ServerFactory, type ServerHost, type ServerLoad, type SimServer } from './sim-server.js';

export interface SlotsOptions {
  /** Requests served at a time; an integer from 1 up. */
  readonly slots: number;
  /** Time of a request, ms, unless it brings its own (`serviceTime` of the traffic, a trace). @default 1000 */
  readonly serviceTime?: Distribution | undefined;
}

export function slots({ slots: count, serviceTime = 1000 }: SlotsOptions): ServerFactory {
  return (id, host, random) => new SlotServer(id, host, random, count, serviceTime);
}

class SlotServer extends ModelServer implements SimServer {
  private readonly slots: number;
  private readonly draw: Sampler;
  private readonly running = new Map<SimRequest, SimEvent>();
  private readonly waiting = new Denque<SimRequest>();

  constructor(id: string, host: ServerHost, random: Random, count: number, serviceTime: Distribution) {
    super(id, host);
    this.slots = count;
    this.draw = samplerOf(serviceTime, random);
  }

  accept(request: SimRequest): void {
    if (this.waiting.length === 0 && this.fits(request)) this.start(request);
    else this.waiting.push(request);
  }

  abort(request: SimRequest): void {
    const event = this.running.get(request);
    if (event === undefined) {
      const at = this.waiting.toArray().indexOf(request);
      if (at >= 0) this.waiting.removeOne(at);
    } else {
      this.host.clock.clearTimeout(event);
      this.leave(request);
    }
    this.startWaiting();
  }

  hasRoom(): boolean {
    return this.waiting.length === 0 && this.inBatch.value < this.slots;
  }

  load(): ServerLoad {
    return {
      waitingQueueSize: this.waiting.length,
      runningRequests: this.running.size,
      kvCacheUsage: this.inBatch.value / this.slots,
    };
  }

  private hold(seats: number): void {
    const nowMs = this.host.clock.now();
    this.inBatch.add(seats, nowMs);
    for (const part of [this.working, this.kvUsage]) part.set(this.inBatch.value / this.slots, nowMs);
  }

  /** A request wider than the server runs alone. */
  private fits({ seats }: SimRequest): boolean {
    return this.inBatch.value + Math.min(seats, this.slots) <= this.slots;
  }

  private start(request: SimRequest): void {
    this.hold(Math.min(request.seats, this.slots));
    this.host.started(request);
    this.running.set(
      request,
      this.host.clock.after((request.serviceMs ?? this.draw()) * this.slowness, () => this.end(request)),
    );
  }

  private end(request: SimRequest): void {
    this.leave(request);
    request.tokensOut = request.outputTokens;
    this.host.token(request);
    this.host.completed(request);
    this.startWaiting();
  }

  private leave(request: SimRequest): void {
    this.running.delete(request);
    this.hold(-Math.min(request.seats, this.slots));
  }

  private startWaiting(): void {
    for (let next = this.waiting.peekFront(); next !== undefined && this.fits(next); next = this.waiting.peekFront()) {
      this.waiting.shift();
      this.start(next);
    }
    if (this.hasRoom()) this.host.roomMade();
  }
}
