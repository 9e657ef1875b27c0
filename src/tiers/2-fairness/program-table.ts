/**
 * The state that the program-aware policy keeps for each fairness ID, across bands. Invariant: a program is in `idle`
 * exactly while nothing of it waits or runs; `idle` is in the order in which they fell idle. Only idle programs are
 * forgotten: those idle longer than the TTL, and the longest idle of more than `mostIdle`.
 */
import { type Linked, LinkedList } from '../../base/queues/linked-list.js';
import type { FlowView, ItemView } from '../views.js';

/** Idle programs remembered at most, so that invented fairness IDs cannot fill memory. */
const mostIdle = 10_000;

/** One fairness ID: a tenant, an agent, a session. */
export class Program implements Linked<Program> {
  previous: Program | undefined = undefined;
  next: Program | undefined = undefined;
  isIdle = false;
  idleSinceMs = 0;
  /** Flows of it with requests waiting, one for each band at most. */
  waitingFlows = 0;
  inFlight = 0;
  /** Requests dispatched; since the session began, for the strategy that knows sessions. */
  dispatched = 0;
  lastEndedAtMs: number = -Infinity;
  /** Waits in the queue: how many, and their mean. */
  waits = 0;
  meanWaitMs = 0;
  /** Cost attained, as it was at `serviceAtMs`. */
  service = 0;
  serviceAtMs: number = -Infinity;
  readonly fairnessId: string;

  constructor(fairnessId: string) {
    this.fairnessId = fairnessId;
  }
}

/** How programs are ranked. A strategy keeps what it knows in them. */
export interface ProgramStrategy {
  /** The flow that goes next; undefined when none has a request waiting. */
  pick(flows: Iterable<FlowView>, find: (flow: FlowView) => Program | undefined, nowMs: number): FlowView | undefined;
  /** A request is about to be counted as dispatched. */
  dispatching?(program: Program, item: ItemView): void;
  /** A program consumed `cost`; negative when an earlier report was too high. */
  charge?(program: Program, cost: number, nowMs: number): void;
}

/** The flow with the highest score, of equals the one whose first request came first. */
export function highest(
  flows: Iterable<FlowView>,
  scoreOf: (flow: FlowView, head: ItemView) => number,
  isFirst = (a: ItemView, b: ItemView): boolean => a.sequence < b.sequence,
): FlowView | undefined {
  let best: FlowView | undefined;
  let bestScore = -Infinity;
  for (const flow of flows) {
    const { head } = flow;
    if (head === undefined) continue;
    const score = scoreOf(flow, head);
    const isTie = score === bestScore && (best?.head === undefined || isFirst(head, best.head));
    if (score <= bestScore && !isTie) continue;
    best = flow;
    bestScore = score;
  }
  return best;
}

export class ProgramTable {
  private readonly programs = new Map<string, Program>();
  private readonly idle = new LinkedList<Program>();
  /** The latest instant heard of; notifications without one happen then. */
  private latestMs = -Infinity;
  private sweepAtMs = -Infinity;
  private readonly ttlMs: number;
  private readonly sweepMs: number;

  /** `ttlMs` 0 = no program is forgotten for its age. */
  constructor(ttlMs: number, sweepMs: number) {
    this.ttlMs = ttlMs;
    this.sweepMs = sweepMs;
  }

  get size(): number {
    return this.programs.size;
  }

  values(): Iterable<Program> {
    return this.programs.values();
  }

  find(fairnessId: string): Program | undefined {
    return this.programs.get(fairnessId);
  }

  /** The program of a fairness ID, made when missing. O(1). */
  of(fairnessId: string): Program {
    let program = this.programs.get(fairnessId);
    if (program === undefined) {
      program = new Program(fairnessId);
      this.programs.set(fairnessId, program);
      this.settleDown(program);
    }
    return program;
  }

  beganWaiting(program: Program): void {
    this.wake(program);
    program.waitingFlows++;
  }

  stoppedWaiting(program: Program): void {
    program.waitingFlows = Math.max(program.waitingFlows - 1, 0);
    this.settleDown(program);
  }

  dispatched(program: Program, waitedMs: number): void {
    this.wake(program);
    program.inFlight++;
    program.dispatched++;
    program.waits++;
    program.meanWaitMs += (waitedMs - program.meanWaitMs) / program.waits;
  }

  /** A program may be told of ends whose dispatch it did not see: they began under the policy that it replaced. */
  ended(program: Program, nowMs: number): void {
    program.inFlight = Math.max(program.inFlight - 1, 0);
    program.lastEndedAtMs = nowMs;
    this.settleDown(program);
  }

  /** Forgets programs that have been idle longer than the TTL; looks once in each interval. O(forgotten). */
  sweep(nowMs: number): void {
    this.latestMs = nowMs;
    if (this.ttlMs === 0 || nowMs < this.sweepAtMs) return;
    this.sweepAtMs = nowMs + this.sweepMs;
    for (let first = this.idle.first; first !== undefined; first = this.idle.first) {
      if (nowMs - first.idleSinceMs <= this.ttlMs) return;
      this.forget(first);
    }
  }

  private settleDown(program: Program): void {
    if (program.isIdle || program.inFlight > 0 || program.waitingFlows > 0) return;
    program.isIdle = true;
    program.idleSinceMs = this.latestMs;
    this.idle.push(program);
    if (this.idle.size > mostIdle && this.idle.first !== undefined) this.forget(this.idle.first);
  }

  private wake(program: Program): void {
    if (!program.isIdle) return;
    program.isIdle = false;
    this.idle.remove(program);
  }

  private forget(program: Program): void {
    this.wake(program);
    this.programs.delete(program.fairnessId);
  }
}
