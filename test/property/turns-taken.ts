/**
 * Round robin once more, as a bound: while a flow waits, another one is served at most twice its weight. Once in what
 * is left of the round in which the flow began to wait, and once in the next.
 */
import type { Flow } from '../../src/tiers/flow.js';

export class TurnsTaken {
  /** Waiting flow → how often each other one was served meanwhile, by its name. */
  private meanwhile = new WeakMap<Flow, Map<string, number>>();

  /** Begins anew: weights or policies have changed. */
  forget(): void {
    this.meanwhile = new WeakMap();
  }

  beganToWait(flow: Flow): void {
    this.meanwhile.delete(flow);
  }

  /** What is wrong about serving this flow while these wait; undefined when nothing is. */
  served(flow: Flow, waiting: readonly Flow[]): string | undefined {
    this.meanwhile.delete(flow);
    let fault: string | undefined;
    for (const other of waiting) {
      if (other === flow) continue;
      const counts = this.meanwhile.get(other) ?? new Map<string, number>();
      this.meanwhile.set(other, counts);
      const count = (counts.get(flow.name) ?? 0) + 1;
      counts.set(flow.name, count);
      if (count > 2 * flow.weight)
        fault ??= `${flow.name} of weight ${flow.weight} was served ${count} times while ${other.name} waited`;
    }
    return fault;
  }
}
