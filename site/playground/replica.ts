/** One replica of the gateway: the package's controller on simulated servers, with its part of what is shared. */
import { budgets } from 'headgate/budgets';
import type { SharedEndpoints } from 'headgate/redis';
import { loadScenario, Simulation } from 'headgate/simulator';
import { isOn } from './faults.ts';
import { scenarioOf } from './scenario.ts';
import { ofReplica, type Settings } from './settings.ts';
import { type SharedStore, sharedSeats } from './shared-state.ts';

export class Replica {
  readonly simulation: Simulation;
  /** What each tenant may spend; undefined without budgets. */
  readonly budgets: ReturnType<typeof budgets> | undefined;
  /** Undefined where the replica is the only one. */
  readonly shared: SharedEndpoints | undefined;
  /** Requests that the clients have sent, tries again included. */
  sent = 0;
  private readonly evicts: boolean;

  constructor(index: number, settings: Settings, store: SharedStore) {
    const { options } = loadScenario(scenarioOf(settings, index));
    const flow = optionsOf(settings);
    this.simulation = new Simulation({ ...options, flow, seed: index + 1 });
    const { flow: controller, clock } = this.simulation;
    this.evicts = settings.evicts;
    // Counted before the controller counts it.
    const enqueue = controller.enqueue.bind(controller);
    controller.enqueue = (request, key) => {
      this.sent++;
      return enqueue(request, key);
    };
    const { budget, replicas } = ofReplica(settings);
    if (budget > 0) {
      this.budgets = budgets({
        budgets: [{ limits: [{ unit: 'tokens', limit: budget }] }],
        wallClock: () => clock.now(),
      });
      controller.reconfigure({ constraints: [...(flow.constraints ?? []), this.budgets] });
    }
    if (replicas > 1) {
      this.shared = sharedSeats(store, index + 1, settings, clock);
      this.shared.attach(controller);
      controller.reconfigure({ saturationDetector: this.shared });
    }
    for (const fault of settings.faults) {
      if (fault.kind !== 'reload') continue;
      for (const at of [fault.at, fault.at + fault.for])
        clock.at(at * 1000, () => this.reload(seatsAt(settings, at), settings));
    }
  }

  /** Evicted requests that wait again. */
  get requeued(): number {
    return this.evicts ? this.simulation.result().counts.requeued : 0;
  }

  /** All is read again but what was spent: policies, limits and the seats, on live queues. */
  private reload(seats: number, settings: Settings): void {
    const { saturationDetector, constraints: _, ...changes } = optionsOf({ ...settings, seats });
    this.shared?.setLimit(seats);
    this.simulation.flow.reconfigure({ ...changes, ...(this.shared === undefined && { saturationDetector }) });
  }
}

/** The seats of each server by the file that holds at that second. */
export function seatsAt({ faults, seats, reloadSeats }: Settings, second: number): number {
  return faults.some((fault) => fault.kind === 'reload' && isOn(fault, second)) ? reloadSeats : seats;
}

/** Policies of its own with every call. */
function optionsOf(settings: Settings) {
  const { flow } = loadScenario(scenarioOf(settings)).options;
  return typeof flow === 'function' ? flow() : flow;
}
