/**
 * The processes of the replicas, and the count of what they have in flight.
 *
 * Invariant: every seat that is counted is held. A replica that is killed leaves its requests behind: they run on in
 * the model server for the time that they take.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { Sometimes } from '../../support/sometimes.js';
import { Count, Spending } from './count.js';
import { type Counter, counters, mostTokens, type Order, type ReplicaPlan, type Report, states } from './messages.js';

interface Seat {
  readonly endsAtMs: number;
  readonly counter: Counter;
  readonly amount: number;
}

/** Of all runs. */
export const reached: Sometimes = new Sometimes(states);

class Replica {
  /** In the run that goes on. */
  name = '';
  hasJoined = false;
  isKilled = false;
  /** What it may use now, by its own account. */
  readonly caps = new Map<Counter, number>();
  readonly inFlight = new Map<Counter, number>();
  /** What it may use, or what runs above that until it ends; 0 once it is killed. */
  readonly usable = new Map<Counter, number>();
  readonly child: ChildProcess;
  readonly seats = new Map<number, Seat>();

  constructor(program: string, onReport: (replica: Replica, report: Report) => void) {
    this.child = fork(program, { serialization: 'json' });
    // A message to a replica that was killed.
    this.child.on('error', () => {});
    this.child.on('message', (report: Report) => onReport(this, report));
    this.child.on('exit', (code, signal) => {
      if (!this.isKilled) throw new Error(`${this.name} ended by itself, with ${code ?? signal}`);
    });
  }

  send(order: Order): void {
    if (this.child.connected) this.child.send(order);
  }
}

export class Observer {
  readonly counts = new Map<Counter, Count>();
  /** Replicas that took part in the run that goes on, those that were killed included. */
  joined = 0;
  readonly problems: Set<string> = new Set<string>();
  spending: Spending = new Spending();
  private run = 0;
  private readonly program: string;
  private readonly idle: Replica[] = [];
  private members: Replica[] = [];
  private readonly left = new Map<Replica, () => void>();

  constructor(program: string) {
    this.program = program;
  }

  get size(): number {
    return this.members.length;
  }

  /** In words: what a run that does not end waits for. */
  get waitsFor(): string {
    const names = (replicas: readonly Replica[]): string => replicas.map(({ name }) => name).join(', ') || 'none';
    return `still starts: ${names(this.members.filter(({ hasJoined }) => !hasJoined))}; still leaves: ${names([...this.left.keys()])}`;
  }

  /** False while a process still starts. */
  get isComplete(): boolean {
    return this.members.every(({ hasJoined }) => hasJoined);
  }

  /** Begins a run with one replica for each plan. A seat moves within `briefMs`. */
  begin(plans: readonly ReplicaPlan[], briefMs: number): void {
    this.run++;
    this.joined = 0;
    this.problems.clear();
    this.spending = new Spending();
    const limits = plans[0]?.limits;
    for (const counter of counters) {
      // A gate looks before it lets go: each replica may exceed its part by its last request.
      const slack = counter === 'tokens' ? plans.length * (mostTokens - 1) : 0;
      this.counts.set(counter, new Count(limits?.[counter] ?? 0, slack, briefMs));
    }
    this.members = [];
    for (const plan of plans) this.add(plan);
  }

  /** One more replica. */
  add(plan: ReplicaPlan): void {
    const replica = this.idle.pop() ?? new Replica(this.program, (from, report) => this.hear(from, report));
    this.members.push(replica);
    this.joined++;
    replica.name = plan.name;
    replica.caps.clear();
    replica.inFlight.clear();
    replica.usable.clear();
    replica.hasJoined = false;
    replica.send({ type: 'join', run: this.run, plan });
  }

  demand(index: number, requests: number): void {
    this.members[index]?.send({ type: 'demand', requests });
  }

  /** Ends the process of a replica at once; its name. */
  kill(index: number): string {
    const [replica] = this.members.splice(index, 1);
    if (replica === undefined) throw new Error(`no replica ${index}`);
    replica.isKilled = true;
    replica.child.kill('SIGKILL');
    for (const counter of counters) this.count(replica, counter);
    const { run } = this;
    for (const [id, seat] of replica.seats) {
      const end = (): void => {
        if (replica.seats.delete(id) && run === this.run) this.gave(replica, seat);
      };
      setTimeout(end, Math.max(0, seat.endsAtMs - performance.now()));
    }
    return replica.name;
  }

  /** Ends the run; the processes stay for the next. */
  async end(): Promise<void> {
    const { members } = this;
    this.members = [];
    await Promise.all(
      members.map((replica) => {
        const gone = new Promise<void>((resolve) => this.left.set(replica, resolve));
        replica.send({ type: 'leave' });
        return gone;
      }),
    );
    this.idle.push(...members);
  }

  close(): void {
    for (const replica of [...this.idle, ...this.members]) {
      replica.isKilled = true;
      replica.child.kill('SIGKILL');
    }
  }

  private hear(replica: Replica, report: Report): void {
    const isCurrent = report.run === this.run;
    if (report.type === 'left') {
      for (const problem of report.problems) this.problems.add(problem);
      for (const state of report.reached) reached.saw(state);
      this.left.get(replica)?.();
      this.left.delete(replica);
      return;
    }
    if (report.type === 'joined') {
      replica.hasJoined = isCurrent;
      return;
    }
    if (report.type === 'spend') {
      if (isCurrent) this.spending.add(report.atMs, report.amount);
      return;
    }
    if (report.type === 'caps') {
      const isMember = isCurrent && this.members.includes(replica);
      for (const counter of counters) {
        const cap = report.caps[counter];
        if (!isMember || cap === undefined) continue;
        replica.caps.set(counter, cap);
        this.count(replica, counter);
      }
      return;
    }
    if (report.type === 'take') {
      // It was killed before it heard that the seat is noted: the work has not begun.
      if (replica.isKilled) return;
      const { counter, amount, forMs } = report;
      const seat = { endsAtMs: performance.now() + forMs, counter, amount };
      replica.seats.set(report.id, seat);
      if (isCurrent) this.took(replica, seat);
    } else {
      const seat = replica.seats.get(report.id);
      if (seat !== undefined && replica.seats.delete(report.id) && isCurrent) this.gave(replica, seat);
    }
    replica.send({ type: 'noted', id: report.id });
  }

  /** True when something was dispatched under every limit since then. */
  hasTakenSince(atMs: number): boolean {
    return [...this.counts.values()].every(({ lastTakenAtMs }) => lastTakenAtMs >= atMs);
  }

  /** Since when all seats of every limit may be used, and none more are. */
  get wholeSinceMs(): number {
    return Math.max(...[...this.counts.values()].map((count) => count.wholeSinceMs));
  }

  private took(replica: Replica, { counter, amount }: Seat): void {
    this.counts.get(counter)!.took(amount);
    replica.inFlight.set(counter, (replica.inFlight.get(counter) ?? 0) + amount);
    this.count(replica, counter);
  }

  private gave(replica: Replica, { counter, amount }: Seat): void {
    this.counts.get(counter)!.gave(amount);
    replica.inFlight.set(counter, (replica.inFlight.get(counter) ?? 0) - amount);
    this.count(replica, counter);
  }

  private count(replica: Replica, counter: Counter): void {
    const inUse = Math.max(replica.caps.get(counter) ?? 0, replica.inFlight.get(counter) ?? 0);
    const usable = replica.isKilled ? 0 : inUse;
    this.counts.get(counter)!.mayUse(usable - (replica.usable.get(counter) ?? 0));
    replica.usable.set(counter, usable);
  }
}
