/** The service that fairness IDs of a band got and were owed: for pages and exporters, never to decide by. */
import { hasNumbers } from '../../base/faults/foreign-values.js';

/** One fairness ID of a band. Costs are in the policy's unit. */
export interface FlowService {
  readonly fairnessId: string;
  /** Cost of its requests that ended, since counting began; never falls. */
  readonly settled: number;
  /** Cost that its requests were charged in the window, predictions and their corrections included. */
  readonly received: number;
  /** Its cost, had each been divided by weight among those that waited; who did not wait is owed its own. */
  readonly owed: number;
}

/** Counted from the first time that somebody asks. At any time the sums of `received` and of `owed` are equal. */
export interface ServiceFigures {
  /** How far `received` and `owed` reach back, ms: up to five minutes. */
  readonly windowMs: number;
  /** Jain's index of `received ÷ owed` over the window, 1 / n … 1: 1 when everybody got what they were owed. */
  readonly fairnessIndex: number;
  /** Fairness IDs that waited or received something in the window; at most 1,000, in no particular order. */
  readonly flows: readonly FlowService[];
  /** All further fairness IDs, as one. */
  readonly others: Omit<FlowService, 'fairnessId'>;
}

export const costs = ['settled', 'received', 'owed'] as const;

/** A copy of what a policy answered; undefined when it is none. May throw for foreign values. */
export function readServiceFigures(answer: unknown): ServiceFigures | undefined {
  if (!hasNumbers(answer, ['windowMs', 'fairnessIndex'])) return undefined;
  const { windowMs, fairnessIndex, flows, others } = answer as Record<string, unknown> & ServiceFigures;
  if (!Array.isArray(flows) || !hasNumbers(others, costs)) return undefined;
  if (!flows.every((flow) => hasNumbers(flow, costs) && typeof flow.fairnessId === 'string')) return undefined;
  const copies = flows.map((flow: FlowService) => ({ fairnessId: flow.fairnessId, ...readCost(flow) }));
  return { windowMs, fairnessIndex, flows: copies, others: readCost(others) };
}

function readCost({ settled, received, owed }: ServiceFigures['others']): ServiceFigures['others'] {
  return { settled, received, owed };
}
