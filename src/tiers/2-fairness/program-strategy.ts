/** How the program-aware policy ranks programs: what its strategies have in common. */
import type { FlowView, ItemView } from '../views.js';
import type { Program } from './program-table.js';

/** One strategy with its settings. It keeps what it knows in the programs. */
export interface ProgramStrategy {
  /** The flow that goes next; undefined when none has a request waiting. */
  pick(
    flows: Iterable<FlowView>,
    programOf: (flow: FlowView) => Program | undefined,
    nowMs: number,
  ): FlowView | undefined;
  /** A request is about to be counted as dispatched. */
  dispatching?(program: Program, item: ItemView): void;
  /** A program consumed `cost`; negative when an earlier report was too high. */
  charge?(program: Program, cost: number, nowMs: number): void;
}
