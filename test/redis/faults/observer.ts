/**
 * The processes of the replicas, and the count of what they have in flight.
 *
 * Invariant: every seat that is counted is held. A replica that is killed leaves its requests behind: they run on in
 * the model server for the time that they take.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { type Counter, counters, type Order, type ReplicaPlan, type Report } from './messages.js';

interface Seat {
  readonly endsAtMs: number;
  readonly counter: Counter;
  readonly amount: number;
}

/** What is in flight of one limit, in the run that goes on. */
interface Count {
  readonly limit: number;
  inFlight: number;
  /** The most above the limit at any moment. */
  mostOver: number;
  taken: number;
  lastTakenAtMs: number;
}

class Replica {
  readonly child: ChildProcess;
  readonly seats = new Map<number, Seat>();

  constructor(program: string, onReport: (replica: Replica, report: Report) => void) {
    this.child = fork(program, { serialization: 'json' });
    // A message to a replica that was killed.
    this.child.on('error', () => {});
    this.child.on('message', (report: Report) => onReport(this, report));
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

  /** Begins a run with one replica for each plan. */
  begin(plans: readonly ReplicaPlan[]): void {
    this.run++;
    this.joined = 0;
    this.problems.clear();
    const limits = plans[0]?.limits;
    for (const counter of counters) {
      this.counts.set(counter, { limit: limits?.[counter] ?? 0, inFlight: 0, mostOver: 0, taken: 0, lastTakenAtMs: 0 });
    }
    this.members = [];
    for (const plan of plans) this.add(plan);
  }

  /** One more replica. */
  add(plan: ReplicaPlan): void {
    const replica = this.idle.pop() ?? new Replica(this.program, (from, report) => this.hear(from, report));
    this.members.push(replica);
    this.joined++;
    replica.send({ type: 'join', run: this.run, plan });
  }

  demand(index: number, requests: number): void {
    this.members[index]?.send({ type: 'demand', requests });
  }

  /** Ends the process of a replica at once. */
  kill(index: number): void {
    const [replica] = this.members.splice(index, 1);
    if (replica === undefined) return;
    replica.child.kill('SIGKILL');
    const { run } = this;
    for (const [id, seat] of replica.seats) {
      const end = (): void => {
        if (replica.seats.delete(id) && run === this.run) this.gave(seat);
      };
      setTimeout(end, Math.max(0, seat.endsAtMs - performance.now()));
    }
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
    for (const { child } of [...this.idle, ...this.members]) child.kill('SIGKILL');
  }

  private hear(replica: Replica, report: Report): void {
    const isCurrent = report.run === this.run;
    if (report.type === 'left') {
      for (const problem of report.problems) this.problems.add(problem);
      this.left.get(replica)?.();
      this.left.delete(replica);
      return;
    }
    if (report.type === 'take') {
      const { counter, amount, forMs } = report;
      const seat = { endsAtMs: performance.now() + forMs, counter, amount };
      replica.seats.set(report.id, seat);
      if (isCurrent) this.took(seat);
    } else {
      const seat = replica.seats.get(report.id);
      if (seat !== undefined && replica.seats.delete(report.id) && isCurrent) this.gave(seat);
    }
    replica.send({ type: 'noted', id: report.id });
  }

  /** True when something was dispatched under every limit since then. */
  hasTakenSince(atMs: number): boolean {
    return [...this.counts.values()].every(({ lastTakenAtMs }) => lastTakenAtMs >= atMs);
  }

  private took({ counter, amount }: Seat): void {
    const count = this.counts.get(counter)!;
    count.inFlight += amount;
    count.taken++;
    count.lastTakenAtMs = performance.now();
    count.mostOver = Math.max(count.mostOver, count.inFlight - count.limit);
  }

  private gave({ counter, amount }: Seat): void {
    this.counts.get(counter)!.inFlight -= amount;
  }
}
