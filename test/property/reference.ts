/** The dispatch order once more, as simply as it can be said: arrays, scans, sorts. No TTL but the request's own. */

export interface Arrival {
  readonly id: number;
  readonly fairnessId: string;
  readonly priority: number;
  readonly arrivedAtMs: number;
  readonly receivedAtMs: number;
  /** Infinity: for ever. */
  readonly ttlMs: number;
  /** Infinity: no target. */
  readonly sloTtftMs: number;
}

export type Fairness = 'globalStrict' | 'roundRobin';
export type Ordering = 'fcfs' | 'edf' | 'sloDeadline';

/** Smallest first; the number of the request is its arrival. */
const sortKeys: Readonly<Record<Ordering, (arrival: Arrival) => number[]>> = {
  fcfs: ({ id }) => [id],
  edf: ({ arrivedAtMs, ttlMs, id }) => [arrivedAtMs + ttlMs, arrivedAtMs, id],
  sloDeadline: ({ receivedAtMs, sloTtftMs, id }) => [receivedAtMs + sloTtftMs, receivedAtMs, id],
};

function byKeys(keys: (arrival: Arrival) => number[]): (a: Arrival, b: Arrival) => number {
  return (a, b) => {
    const [left, right] = [keys(a), keys(b)];
    const first = left.findIndex((key, i) => key !== right[i]);
    return first < 0 ? 0 : (left[first] as number) < (right[first] as number) ? -1 : 1;
  };
}

/** Whose turn it is, with the names of flows on slips of paper. */
class Rounds {
  private toServe: string[] = [];
  private forNextRound: string[] = [];
  private served: string[] = [];
  private seats = 0;
  private readonly everWaited: string[] = [];

  beganToWait(name: string): void {
    this.everWaited.push(name);
    const joins = !this.served.includes(name) && this.seats > 0;
    if (joins) this.seats--;
    (joins ? this.toServe : this.forNextRound).push(name);
  }

  stoppedWaiting(name: string): void {
    this.toServe = this.toServe.filter((other) => other !== name);
    this.forNextRound = this.forNextRound.filter((other) => other !== name);
  }

  next(): string {
    if (this.toServe.length === 0) {
      this.toServe = this.forNextRound;
      this.forNextRound = [];
      this.served = [];
      this.seats = this.toServe.length;
    }
    return this.toServe[0] as string;
  }

  hadItsTurn(name: string, waitsOn: boolean): void {
    // A flow that never had to wait has no slip yet.
    if (!this.everWaited.includes(name)) return;
    this.served.push(name);
    this.stoppedWaiting(name);
    if (waitsOn) this.forNextRound.push(name);
  }
}

export class Reference {
  nowMs: number;
  /** `12 Dispatched`, in order. */
  readonly log: string[] = [];
  private waiting: Arrival[] = [];
  private running: number[] = [];
  private readonly rounds = new Map<number, Rounds>();
  private readonly maxRunning: number;
  private readonly fairness: (priority: number) => Fairness;
  private readonly ordering: (priority: number) => Ordering;

  constructor(
    nowMs: number,
    maxRunning: number,
    fairness: (priority: number) => Fairness,
    ordering: (priority: number) => Ordering,
  ) {
    this.nowMs = nowMs;
    this.maxRunning = maxRunning;
    this.fairness = fairness;
    this.ordering = ordering;
  }

  arrive(arrival: Arrival): void {
    const mayPass =
      this.running.length < this.maxRunning && this.waiting.every(({ priority }) => priority < arrival.priority);
    if (mayPass) {
      this.start(arrival);
      this.roundsOf(arrival.priority).hadItsTurn(arrival.fairnessId, false);
      return;
    }
    const isFirst = !this.waiting.some((other) => sameFlow(other, arrival));
    this.waiting.push(arrival);
    if (isFirst) this.roundsOf(arrival.priority).beganToWait(arrival.fairnessId);
    this.serve();
  }

  release(id: number): void {
    this.running = this.running.filter((other) => other !== id);
    this.serve();
  }

  abort(id: number): void {
    const arrival = this.waiting.find((other) => other.id === id);
    if (arrival !== undefined) this.drop(arrival, 'EvictedContextCancelled');
  }

  advance(ms: number): void {
    const untilMs = this.nowMs + ms;
    const due = this.waiting.filter((arrival) => expiry(arrival) <= untilMs);
    for (const arrival of due.sort((a, b) => expiry(a) - expiry(b) || a.id - b.id)) {
      this.nowMs = expiry(arrival);
      this.drop(arrival, 'EvictedTTL');
    }
    this.nowMs = untilMs;
  }

  private serve(): void {
    while (this.running.length < this.maxRunning && this.waiting.length > 0) {
      const highest = Math.max(...this.waiting.map(({ priority }) => priority));
      let eligible = this.waiting.filter(({ priority }) => priority === highest);
      if (this.fairness(highest) === 'roundRobin') {
        const name = this.roundsOf(highest).next();
        eligible = eligible.filter(({ fairnessId }) => fairnessId === name);
      }
      const [next] = eligible.sort(byKeys(sortKeys[this.ordering(highest)])) as [Arrival];
      this.waiting = this.waiting.filter((other) => other !== next);
      this.start(next);
      this.roundsOf(highest).hadItsTurn(
        next.fairnessId,
        this.waiting.some((other) => sameFlow(other, next)),
      );
    }
  }

  private start({ id }: Arrival): void {
    this.running.push(id);
    this.log.push(`${id} Dispatched`);
  }

  private drop(arrival: Arrival, outcome: string): void {
    this.waiting = this.waiting.filter((other) => other !== arrival);
    if (!this.waiting.some((other) => sameFlow(other, arrival)))
      this.roundsOf(arrival.priority).stoppedWaiting(arrival.fairnessId);
    this.log.push(`${arrival.id} ${outcome}`);
  }

  private roundsOf(priority: number): Rounds {
    const rounds = this.rounds.get(priority) ?? new Rounds();
    this.rounds.set(priority, rounds);
    return rounds;
  }
}

function expiry({ arrivedAtMs, ttlMs }: Arrival): number {
  return arrivedAtMs + ttlMs;
}

function sameFlow(a: Arrival, b: Arrival): boolean {
  return a.fairnessId === b.fairnessId && a.priority === b.priority;
}
