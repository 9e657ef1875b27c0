/** Names of service classes, and the priority that each stands for. */
import * as s from '../base/schema/schema.js';

export interface SloClassesOptions {
  /** Class → priority, −100…100; for other priorities of the known classes, and for more classes. @default none */
  overrides?: Readonly<Record<string, number>> | undefined;
}

export interface SloClasses {
  /** The priority of a class; 3 when the class is empty or unknown. Names are case-sensitive. */
  priorityOf(sloClass: string | undefined): number;
  /** Whether the priority of a class is negative. */
  isSheddable(sloClass: string | undefined): boolean;
  /** For engines where the lowest goes first, such as vLLM's `priority`: 0 is the most urgent; none is negative. */
  invertedPriorityOf(sloClass: string | undefined): number;
}

const defaults = { critical: 4, standard: 3, batch: -1, sheddable: -2, background: -3 };

/** The priority of empty and unknown classes; overriding `standard` does not move it. */
const otherwise = 3;

const optionsSchema = s.object({ overrides: s.optional(s.record(s.integer({ from: -100, to: 100 })), {}) });

/**
 * `critical` 4, `standard` 3, `batch` −1, `sheddable` −2, `background` −3, with the overrides on top.
 * Source: BLIS, SLO classes. @throws FlowConfigError
 */
export function sloClasses(options: SloClassesOptions = {}): SloClasses {
  const { overrides } = s.parse(optionsSchema, options, 'sloClasses');
  const priorities = new Map(Object.entries({ ...defaults, ...overrides }));
  const highest = Math.max(otherwise, ...priorities.values());
  const priorityOf = (sloClass: string | undefined): number => priorities.get(sloClass ?? '') ?? otherwise;
  return {
    priorityOf,
    isSheddable: (sloClass) => priorityOf(sloClass) < 0,
    invertedPriorityOf: (sloClass) => highest - priorityOf(sloClass),
  };
}
