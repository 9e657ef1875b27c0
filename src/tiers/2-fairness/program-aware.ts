/** Serves programs (agents, sessions, tenants) by what they have consumed, or by how far they have come. */
import type { output } from 'zod/v4/core';
import { jainIndex } from '../../base/jain-index.js';
import { type Definition, define } from '../../base/policy-definition.js';
import * as s from '../../base/schema/schema.js';
import type { BandView, FlowView } from '../views.js';
import type { FairnessPolicy, FlowFairnessPolicy, FlowSelector } from './fairness-policy.js';
import { leastAttainedService } from './least-attained-service.js';
import { type Program, type ProgramStrategy, ProgramTable } from './program-table.js';
import { turnPriority } from './turn-priority.js';

/** A program is a fairness ID; it costs `promptTokenWeight` · prompt + `completionTokenWeight` · completion tokens. */
export interface ProgramAwareOptions {
  /** `las`: the program that attained least service. `turn-priority`: the one with the most turns. @default 'las' */
  strategy?: 'las' | 'turn-priority' | undefined;
  /** Weight of little service in the score, from 0 up. @default 0.8 */
  lasWeightService?: number | undefined;
  /** Weight of the head's wait in the score, from 0 up. @default 0.2 */
  lasWeightHeadWait?: number | undefined;
  /** Time in which attained service counts half; 0 = it always counts in full. @default 60 */
  lasHalfLifeSeconds?: number | undefined;
  /** Turns that one second of waiting is worth, from 0 up. @default 0.05 */
  turnPriorityTimeWeight?: number | undefined;
  /** Pause after which a session begins anew; 0 = never. @default 120 */
  turnPriorityInactivitySeconds?: number | undefined;
  /** Idle time after which a program is forgotten; 0 = only when 10,000 others fell idle after it. @default 3600 */
  evictionTtlSeconds?: number | undefined;
  /** How often such programs are looked for, above 0. @default 300 */
  evictionSweepSeconds?: number | undefined;
  /** @default 1 */
  promptTokenWeight?: number | undefined;
  /** @default 2 */
  completionTokenWeight?: number | undefined;
}

const type = 'program-aware-fairness';

const parameters = s.object({
  strategy: s.optional(s.oneOf('las', 'turn-priority'), 'las'),
  lasWeightService: s.optional(s.atLeastZero(), 0.8),
  lasWeightHeadWait: s.optional(s.atLeastZero(), 0.2),
  lasHalfLifeSeconds: s.optional(s.atLeastZero(), 60),
  turnPriorityTimeWeight: s.optional(s.atLeastZero(), 0.05),
  turnPriorityInactivitySeconds: s.optional(s.atLeastZero(), 120),
  evictionTtlSeconds: s.optional(s.atLeastZero(), 3600),
  evictionSweepSeconds: s.optional(s.aboveZero(), 300),
  promptTokenWeight: s.optional(s.atLeastZero(), 1),
  completionTokenWeight: s.optional(s.atLeastZero(), 2),
});

type Settings = output<typeof parameters>;

/** The policy, with figures for dashboards. */
export interface ProgramAwarePolicy extends FlowFairnessPolicy {
  /** Programs that are remembered. */
  readonly programs: number;
  /** Jain's index over the mean waits of the programs that are remembered, 0…1. O(programs): computed when read. */
  readonly fairnessIndex: number;
}

function programAwareSelector(
  band: BandView,
  programs: ProgramTable,
  strategy: ProgramStrategy,
  { promptTokenWeight, completionTokenWeight }: Settings,
): FlowSelector {
  const programOf = (flow: FlowView): Program | undefined => programs.find(flow.fairnessId);
  return {
    pick(nowMs) {
      programs.sweep(nowMs);
      return strategy.pick(band.activeFlows(), programOf, nowMs);
    },
    forHeld: (held) => ({ pick: (nowMs) => strategy.pick(held.activeFlows(), programOf, nowMs) }),
    flowActivated: ({ fairnessId }) => programs.beganWaiting(programs.of(fairnessId)),
    flowDeactivated: ({ fairnessId }) => programs.stoppedWaiting(programs.of(fairnessId)),
    dispatched({ fairnessId }, item, nowMs) {
      programs.sweep(nowMs);
      const program = programs.of(fairnessId);
      strategy.dispatching?.(program, item);
      programs.dispatched(program, nowMs - item.enqueuedAtMs);
    },
    consumed({ fairnessId }, { promptTokens, completionTokens }, nowMs) {
      const cost = promptTokenWeight * promptTokens + completionTokenWeight * completionTokens;
      strategy.charge?.(programs.of(fairnessId), cost, nowMs);
    },
    settled({ fairnessId }, usage, nowMs, tokens) {
      programs.sweep(nowMs);
      const program = programs.of(fairnessId);
      const wasReported = usage.promptTokens > 0 || usage.completionTokens > 0;
      if (!wasReported) strategy.charge?.(program, tokens > 0 ? tokens : 1, nowMs);
      programs.ended(program, nowMs);
    },
  };
}

/**
 * Fairness by fairness ID over all the bands, and all the controllers, that share the object. O(active flows) for each
 * pick, O(1) for everything else. Requests are charged what `lease.report` says as it says it, and a request of which
 * nothing was reported its booked `tokens`, or 1, when it ends. Differs from llm-d-router: charged while the response
 * streams and however it ends, not at the end of a complete stream alone; equal scores go by arrival; one request that
 * never ends does not keep its program for ever, because leases end. Source: llm-d-router, program-aware-fairness.
 * @throws FlowConfigError
 */
export function programAware(options: ProgramAwareOptions = {}): ProgramAwarePolicy {
  const settings = s.parse(parameters, options, 'programAware');
  const programs = new ProgramTable(settings.evictionTtlSeconds * 1000, settings.evictionSweepSeconds * 1000);
  const strategy = strategyOf(settings);
  return {
    type,
    createSelector: (band) => programAwareSelector(band, programs, strategy, settings),
    get programs() {
      return programs.size;
    },
    get fairnessIndex() {
      const waited = [...programs.values()].filter(({ waits }) => waits > 0);
      return jainIndex(waited.map(({ meanWaitMs }) => meanWaitMs));
    },
  };
}

function strategyOf(settings: Settings): ProgramStrategy {
  if (settings.strategy === 'turn-priority') {
    const { turnPriorityTimeWeight: timeWeight, turnPriorityInactivitySeconds: inactivitySeconds } = settings;
    return turnPriority({ timeWeight, inactivityMs: inactivitySeconds * 1000 });
  }
  const { lasWeightService: weightService, lasWeightHeadWait: weightHeadWait } = settings;
  return leastAttainedService({ weightService, weightHeadWait, halfLifeMs: settings.lasHalfLifeSeconds * 1000 });
}

export const programAwarePlugin: Definition<FairnessPolicy> = define(type, parameters, programAware);
