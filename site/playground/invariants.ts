/**
 * What must hold whatever breaks, looked at every simulated second: the audit of `headgate/testing`, the sum of the
 * seats, and that each request that was sent is somewhere. A violation is kept, with the second at which it was seen.
 */
import { audit } from 'headgate/testing';
import type { Replica } from './replica.ts';

/** Requests so far, over all replicas, counted apart from the controllers by their events. */
export interface Counts {
  dispatched: number;
  released: number;
  dropped: number;
}

/** What the page writes, of one instant. */
export interface Books {
  readonly sent: number;
  readonly ended: number;
  readonly dropped: number;
  readonly waiting: number;
  readonly running: number;
  /** Seats that are taken at each server. */
  readonly seats: readonly number[];
}

/** More would say nothing new. */
const mostViolations = 5;

export class Invariants {
  looks = 0;
  /** The last look, simulated ms. */
  atMs = 0;
  /** In the order in which they were seen; the same is told once. */
  readonly violations: string[] = [];
  private readonly known = new Set<string>();
  books: Books = { sent: 0, ended: 0, dropped: 0, waiting: 0, running: 0, seats: [] };
  private readonly replicas: readonly Replica[];

  constructor(replicas: readonly Replica[]) {
    this.replicas = replicas;
  }

  /** O(waiting + running). `seats`: taken at each server, as the picture shows them. */
  look(atMs: number, counts: Readonly<Counts>, seats: readonly number[]): void {
    this.looks++;
    this.atMs = atMs;
    let [waiting, running, sent, again] = [0, 0, 0, 0];
    for (const [index, replica] of this.replicas.entries()) {
      const { violations, figures } = audit(replica.simulation.flow);
      for (const violation of violations)
        this.note(atMs, this.replicas.length === 1 ? violation : `replica ${index + 1}: ${violation}`);
      waiting += figures.waiting;
      running += figures.inFlight;
      sent += replica.sent;
      again += replica.requeued;
    }
    const { dispatched, released, dropped } = counts;
    const ended = released - again;
    const taken = seats.reduce((sum, each) => sum + each, 0);
    this.books = { sent, ended, dropped, waiting, running, seats };
    if (taken !== running) this.note(atMs, `${taken} seats are taken, and ${running} requests run`);
    if (sent !== ended + dropped + waiting + running)
      this.note(atMs, `${sent} requests were sent, and ${ended + dropped + waiting + running} are known`);
    if (dispatched !== released + running)
      this.note(atMs, `${dispatched} requests were let go, and ${released + running} ended or run`);
  }

  /** A seat was taken at a server beyond those that all replicas together may take there. */
  over(atMs: number, server: string, taken: number, most: number): void {
    this.note(atMs, `${server} has ${taken} of ${most} seats taken`);
  }

  private note(atMs: number, violation: string): void {
    if (this.violations.length >= mostViolations || this.known.has(violation)) return;
    this.known.add(violation);
    this.violations.push(`${(atMs / 1000).toFixed(0)} s: ${violation}`);
  }
}
