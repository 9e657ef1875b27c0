/** The contract of simulated model servers: what they are given, what they tell and report; and what models share. */
import type { VirtualClock } from '../clock/virtual-clock.js';
import type { Random } from '../random/distributions.js';
import type { SimRequest } from '../requests/sim-request.js';

/** Receives a server's reports of its work. Calls may lead to further `accept`s after the event, never during it. */
export interface ServerHost {
  readonly clock: VirtualClock;
  /** The server has begun to work on the request. Called again after a preemption. */
  started(request: SimRequest): void;
  /** The request lost its place and begins again. */
  preempted(request: SimRequest): void;
  /** One more token of its answer is out; `tokensOut` counts it already. */
  token(request: SimRequest): void;
  completed(request: SimRequest): void;
  /** The server may have room that it had not before. */
  roomMade(): void;
}

/** The report of a server when it is scraped. */
export interface ServerLoad {
  readonly waitingQueueSize: number;
  readonly runningRequests: number;
  /** 0…1 */
  readonly kvCacheUsage: number;
}

/** How a server was used. Integrals in request-ms and so on, from the first event to the time of asking. */
export interface ServerUse {
  /** Share of the time in which it worked, or of its slots that were taken, 0…1. */
  readonly utilization: number;
  /** Requests being worked on, on average over time. */
  readonly meanRunning: number;
  /** The part of the KV cache that was in use, on average over time, 0…1. */
  readonly meanKvUsage: number;
  /** The most of it at one time. */
  readonly peakKvUsage: number;
  readonly preemptions: number;
}

/**
 * A simulated model server. Contract: it takes every request that it is given and queues those that it has no room for;
 * it tells `host` of each token and of the end, unless `abort` came first. It draws from its own random numbers and
 * sets events on `host.clock` alone.
 */
export interface SimServer {
  readonly id: string;
  accept(request: SimRequest): void;
  /** The client has left, or the request was evicted: its place is free at once. */
  abort(request: SimRequest): void;
  /** True while the server would begin with one more request now. Only a scheduler inside the server knows this. */
  hasRoom(): boolean;
  /** Work that begins from now on takes `factor` times as long; 1 is its own pace. `slowdowns` need this. */
  slowDown?(factor: number): void;
  load(): ServerLoad;
  use(nowMs: number): ServerUse;
}

/** Makes one server; `random` is its own. */
export type ServerFactory = (id: string, host: ServerHost, random: Random) => SimServer;

/** What every model has: its name, its host, and its pace. */
export abstract class ModelServer {
  readonly id: string;
  protected readonly host: ServerHost;
  /** Steps and requests that begin take so many times as long; what runs keeps its end. */
  protected slowness = 1;
  protected readonly inBatch: TimeAverage = new TimeAverage();
  protected readonly working: TimeAverage = new TimeAverage();
  protected readonly kvUsage: TimeAverage = new TimeAverage();
  protected preemptions = 0;

  constructor(id: string, host: ServerHost) {
    this.id = id;
    this.host = host;
  }

  slowDown(factor: number): void {
    this.slowness = factor;
  }

  use(nowMs: number): ServerUse {
    const { kvUsage, preemptions } = this;
    const [utilization, meanRunning] = [this.working.mean(nowMs), this.inBatch.mean(nowMs)];
    return { utilization, meanRunning, meanKvUsage: kvUsage.mean(nowMs), peakKvUsage: kvUsage.peak, preemptions };
  }
}

/** The mean of a figure over time, each value counting as long as it stood. */
export class TimeAverage {
  value = 0;
  peak = 0;
  private area = 0;
  private changedAtMs = 0;

  set(value: number, nowMs: number): void {
    this.area += this.value * (nowMs - this.changedAtMs);
    this.changedAtMs = nowMs;
    this.value = value;
    if (value > this.peak) this.peak = value;
  }

  add(difference: number, nowMs: number): void {
    this.set(this.value + difference, nowMs);
  }

  /** From time 0 on; 0 at time 0. */
  mean(nowMs: number): number {
    return nowMs > 0 ? (this.area + this.value * (nowMs - this.changedAtMs)) / nowMs : 0;
  }
}
