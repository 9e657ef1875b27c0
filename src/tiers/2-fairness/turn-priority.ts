/** Turn priority: the deepest session goes next, so that what is begun ends; waiting makes up for depth. */
import { highest, type Program, type ProgramStrategy } from './program-table.js';

export interface TurnPrioritySettings {
  /** Turns that one second of waiting is worth. */
  readonly timeWeight: number;
  /** A pause longer than this begins a new session; 0 = none does. */
  readonly inactivityMs: number;
}

/** Fairness IDs that stand for many clients at once: the default, and those that a full flow table makes up. */
function isShared(fairnessId: string): boolean {
  return fairnessId === 'default-flow' || fairnessId.startsWith('\u0000');
}

/** True after such a pause, from the last request's end to this one's arrival, so that queueing is no pause. */
function beginsSession(program: Program, arrivedAtMs: number, inactivityMs: number): boolean {
  return inactivityMs > 0 && program.inFlight === 0 && arrivedAtMs - program.lastEndedAtMs > inactivityMs;
}

/** A request's number in its session, from 1, if it came at `arrivedAtMs`. 1 for fairness IDs that are no session. */
export function turnOf(program: Program | undefined, arrivedAtMs: number, inactivityMs: number): number {
  if (program === undefined || isShared(program.fairnessId) || beginsSession(program, arrivedAtMs, inactivityMs))
    return 1;
  return program.dispatched + 1;
}

/**
 * Score = turn + `timeWeight` · seconds that the head has waited; the highest goes, of equals the one that waited
 * longest.
 * Differs from llm-d-router: after a pause the count begins again, where the reference counts on from the second
 * request; and fairness IDs that many share never gain depth, or the clients behind them would overtake every session.
 * Source: llm-d-router, program-aware-fairness, strategy turn-priority.
 */
export function turnPriority({ timeWeight, inactivityMs }: TurnPrioritySettings): ProgramStrategy {
  return {
    pick: (flows, programOf, nowMs) =>
      highest(
        flows,
        (flow, { enqueuedAtMs }) => {
          const waitSeconds = Math.max(nowMs - enqueuedAtMs, 0) / 1000;
          return turnOf(programOf(flow), enqueuedAtMs, inactivityMs) + timeWeight * waitSeconds;
        },
        (a, b) => (a.enqueuedAtMs - b.enqueuedAtMs || a.sequence - b.sequence) < 0,
      ),
    dispatching(program, item) {
      if (beginsSession(program, item.enqueuedAtMs, inactivityMs)) program.dispatched = 0;
    },
  };
}
