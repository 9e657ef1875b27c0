/** Least attained service: the flow that consumed least of late goes next, and a long wait counts a little. */
import type { FlowView } from '../views.js';
import { highest, type Program, type ProgramStrategy } from './program-table.js';

export interface LeastAttainedServiceSettings {
  readonly weightService: number;
  readonly weightHeadWait: number;
  /** 0 = service is never forgotten. */
  readonly halfLifeMs: number;
}

/** The program's service, aged to `nowMs`. The result is stored, so that an idle program ages without being visited. */
export function serviceAt(program: Program, nowMs: number, halfLifeMs: number): number {
  const elapsedMs = nowMs - program.serviceAtMs;
  if (elapsedMs > 0) {
    if (halfLifeMs > 0) program.service *= 2 ** (-elapsedMs / halfLifeMs);
    program.serviceAtMs = nowMs;
  }
  return program.service;
}

/** Where `value` lies between `min` and `max`, 0…1; 0.5 when the two are equal. */
export function rangeNormalize(value: number, min: number, max: number): number {
  return max === min ? 0.5 : (value - min) / (max - min);
}

/** How long the flow's head has been waiting, in whole ms as the reference counts. */
function headWaitMs(flow: FlowView, nowMs: number): number {
  return Math.trunc(nowMs - (flow.head?.enqueuedAtMs ?? nowMs));
}

/**
 * The highest `weightService · (1 − norm(service)) + weightHeadWait · norm(head wait)` goes, of equals the earlier
 * head; both relative to flows that wait. Source: llm-d-router, program-aware-fairness, strategy las.
 */
export function leastAttainedService(settings: LeastAttainedServiceSettings): ProgramStrategy {
  const { weightService, weightHeadWait, halfLifeMs } = settings;
  return {
    pick(flows, programOf, nowMs) {
      const serviceOf = (flow: FlowView): number => {
        const program = programOf(flow);
        return program === undefined ? 0 : serviceAt(program, nowMs, halfLifeMs);
      };
      let leastService = Infinity;
      let mostService = -Infinity;
      let shortestMs = Infinity;
      let longestMs = -Infinity;
      for (const flow of flows) {
        const service = serviceOf(flow);
        const waitMs = headWaitMs(flow, nowMs);
        leastService = Math.min(leastService, service);
        mostService = Math.max(mostService, service);
        shortestMs = Math.min(shortestMs, waitMs);
        longestMs = Math.max(longestMs, waitMs);
      }
      return highest(flows, (flow) => {
        const service = rangeNormalize(serviceOf(flow), leastService, mostService);
        const wait = rangeNormalize(headWaitMs(flow, nowMs), shortestMs, longestMs);
        return weightService * (1 - service) + weightHeadWait * wait;
      });
    },
    charge(program, cost, nowMs) {
      program.service = Math.max(serviceAt(program, nowMs, halfLifeMs) + cost, 0);
    },
  };
}
