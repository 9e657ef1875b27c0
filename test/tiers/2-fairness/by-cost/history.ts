/**
 * Random histories of a band: arrivals, dispatches, reports, ends of all kinds, flows that are held back, flows that
 * are forgotten.
 */
import type { FlowFairnessPolicy } from '../../../../src/index.js';
import { Random } from '../../../property/random.js';
import { FakeBand, type Running, usage } from './fake-band.js';

export interface Open extends Running {
  /** What it will have cost. */
  readonly cost: number;
  /** The highest report so far. */
  reported: number;
}

export interface History {
  readonly band: FakeBand;
  readonly running: Open[];
  /** What the requests that ended had cost, by fairness ID. */
  readonly settled: Map<string, number>;
  /** The fairness IDs and arrival numbers of dispatches, in order. */
  readonly order: string[];
}

export interface HistorySetup {
  readonly seed: number;
  readonly steps: number;
  readonly slots: number;
  readonly names: readonly string[];
  readonly collects?: boolean;
  readonly weights?: Record<string, number>;
  /** Predictions are exact without. */
  readonly isNoisy?: boolean;
  /** Flows are held back and let out. */
  readonly holds?: boolean;
  /** Part of the steps in which a request arrives; a fifth of them end one. @default 0.2 */
  readonly arrivals?: number;
  /** Every request costs what it was predicted to cost. */
  readonly endsWell?: boolean;
  readonly afterStep?: (history: History) => void;
}

/** The same seed makes the same decisions, whatever the policy decides, as long as it picks the same. */
export function live(policy: FlowFairnessPolicy, setup: HistorySetup): History {
  const {
    seed,
    steps,
    slots,
    names,
    collects = false,
    weights = {},
    isNoisy = true,
    holds = true,
    arrivals = 0.2,
    endsWell = false,
    afterStep,
  } = setup;
  const random = new Random(seed);
  const band = new FakeBand(policy, { collects, weights });
  const running: Open[] = [];
  const settled = new Map<string, number>();
  const order: string[] = [];
  const costs = new Map<number, number>();
  const history: History = { band, running, settled, order };
  const begin = (begun: Running | undefined): void => {
    if (begun === undefined) return;
    order.push(`${begun.flow.fairnessId} ${begun.item.sequence}`);
    running.push({ ...begun, cost: costs.get(begun.item.sequence) as number, reported: 0 });
  };
  const end = (open: Open, cost: number): void => {
    settled.set(open.flow.fairnessId, (settled.get(open.flow.fairnessId) ?? 0) + cost);
  };
  for (let step = 0; step < steps; step++) {
    const name = random.pick(names);
    const dice = random.next();
    const cost = random.pick([1, 2, 5, 10, 50, 100]);
    const tokens = isNoisy ? Math.max(Math.round(cost * (0.5 + random.next())), 1) : cost;
    const which = random.next();
    band.nowMs += random.int(20);
    if (dice < arrivals) {
      costs.set(band.add(name, { tokens }).sequence, cost);
    } else if (dice < 0.6) {
      if (running.length < slots) begin(band.serve());
    } else if (dice < 0.64 && band.waiting === 0) {
      const passed = band.pass(name, { tokens });
      costs.set(passed.item.sequence, cost);
      begin(passed);
    } else if (dice < 0.7 && running.length > 0) {
      const open = running[Math.floor(which * running.length)] as Open;
      open.reported = Math.min(open.reported + 1 + Math.floor(open.cost * random.next()), open.cost);
      band.report(open, usage(open.reported));
      // What makes no sense changes nothing.
      if (random.chance(0.2)) band.report(open, usage(random.pick([open.reported / 2, 2 ** 60])));
    } else if (dice < 0.93 && running.length > 0) {
      const [open] = running.splice(Math.floor(which * running.length), 1) as [Open];
      const ending = random.next();
      if (endsWell || ending < 0.8) {
        band.settle(open, usage(open.cost));
        end(open, open.cost);
      } else if (ending < 0.9) {
        // Broken off: it cost what was reported; without any report what was predicted stands.
        band.settle(open, usage(open.reported));
        end(open, open.reported > 0 ? open.reported : open.item.tokens);
      } else {
        band.requeue(open, usage(open.reported));
        end(open, open.reported);
      }
    } else if (dice < 0.96) {
      const flow = band.flows.get(name);
      if (flow !== undefined && flow.waiting > 0) band.cancel(name, Math.floor(which * flow.waiting));
    } else if (holds) {
      if (band.flows.get(name)?.isHeld === true) band.releaseHeld(name);
      else if (band.flows.has(name)) band.hold(name);
    }
    afterStep?.(history);
  }
  return history;
}
