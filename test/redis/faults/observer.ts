/**
 * The processes of the replicas, and the count of what they have in flight.
 *
 * Invariant: every seat that is counted is held. A replica that is killed leaves its requests behind: they run on in the model server for
 * the time that they take.
 */
import { type ChildProcess, fork } from 'node:child_process';
import type { Order, ReplicaPlan, Report } from './messages.js';

interface Seat {
  readonly endsAtMs: number;
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
  /** The most seats above the limit, and when, in the run that goes on. */
  mostOver = 0;
  taken = 0;
  inFlight = 0;
  lastTakenAtMs = 0;
  readonly problems: Set<string> = new Set<string>();
  private run = 0;
  private limit = 0;
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
    this.mostOver = 0;
    this.taken = 0;
    this.inFlight = 0;
    this.problems.clear();
    this.limit = plans[0]?.limit ?? 0;
    this.members = [];
    for (const plan of plans) this.add(plan);
  }

  /** One more replica. */
  add(plan: ReplicaPlan): void {
    const replica = this.idle.pop() ?? new Replica(this.program, (from, report) => this.hear(from, report));
    this.members.push(replica);
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
    for (const [id, { endsAtMs }] of replica.seats) {
      const end = (): void => {
        if (replica.seats.delete(id) && run === this.run) this.inFlight--;
      };
      setTimeout(end, Math.max(0, endsAtMs - performance.now()));
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
      replica.seats.set(report.id, { endsAtMs: performance.now() + report.forMs });
      if (isCurrent) this.took();
    } else if (replica.seats.delete(report.id) && isCurrent) this.inFlight--;
    replica.send({ type: 'noted', id: report.id });
  }

  private took(): void {
    this.inFlight++;
    this.taken++;
    this.lastTakenAtMs = performance.now();
    this.mostOver = Math.max(this.mostOver, this.inFlight - this.limit);
  }
}
