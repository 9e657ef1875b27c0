/**
 * The settings of single fairness IDs: an object that names them, or a function of the host, who keeps plans in a
 * database. Invariant: the host's function is asked once for each fairness ID until `refresh`, or until so many others
 * were asked for that the oldest answers were forgotten. If it fails, its last answer for that fairness ID stays in
 * force; without one, the settings of the band do. It is not asked again before `refresh`, so that a database that is
 * down is not asked for every request.
 */
import { isPromise } from '../base/async-function.js';
import type { PluginErrorSink } from '../base/faults/plugin-errors.js';
import { PluginGuard } from '../base/faults/plugin-guard.js';
import * as s from '../base/schema/schema.js';
import type { FlowProfile, FlowProfiles } from '../tiers/flow.js';

/** Profiles, as the controller keeps them. */
export interface FlowSettingsSource extends FlowProfiles {
  /** Receives failures of the host's function. */
  reportTo?(errors: PluginErrorSink): void;
  /** Asks the function again when the settings are next needed. */
  refresh?(fairnessId: string): void;
}

/** The settings that an object names. */
export function namedFlows(profiles: ReadonlyMap<string, FlowProfile>): FlowSettingsSource {
  return {
    size: profiles.size,
    mayCap: [...profiles.values()].some(({ maxInFlight }) => maxInFlight !== undefined),
    get: (fairnessId) => profiles.get(fairnessId),
  };
}

interface Answer {
  readonly profile: FlowProfile | undefined;
  /** False once it was refreshed: in force only if the function fails. */
  isFresh: boolean;
}

/** The settings that the host's function tells; the answers for `most` fairness IDs are kept. */
export function askedFlows(
  ask: (fairnessId: string) => unknown,
  schema: s.Schema<FlowProfile>,
  most: number,
): FlowSettingsSource {
  const answers = new Map<string, Answer>();
  let guard: PluginGuard | undefined;

  function answerFor(fairnessId: string, known: Answer | undefined): FlowProfile | undefined {
    try {
      const answer: unknown = ask(fairnessId);
      if (answer === undefined) return undefined;
      const verdict = isPromise(answer) ? undefined : s.validate(schema, answer);
      if (verdict?.ok === true) return verdict.value;
      const wrong = verdict?.issues.map(({ path, expected }) => `${path && `${path}: `}expected ${expected}`) ?? [];
      const rule = 'flows must return settings at once, or undefined';
      guard?.violated(wrong.length === 0 ? rule : `${rule}: ${wrong.join(', ')}`, answer);
    } catch (error) {
      guard?.failed(error);
    }
    return known?.profile;
  }

  return {
    size: Infinity,
    mayCap: true,
    get(fairnessId) {
      const known = answers.get(fairnessId);
      if (known?.isFresh === true) return known.profile;
      const profile = answerFor(fairnessId, known);
      const [oldest = ''] = answers.keys();
      if (known === undefined && answers.size >= most) answers.delete(oldest);
      answers.set(fairnessId, { profile, isFresh: true });
      return profile;
    },
    reportTo(errors) {
      guard = new PluginGuard('flows', { type: 'flows' }, errors);
    },
    refresh(fairnessId) {
      const known = answers.get(fairnessId);
      if (known !== undefined) known.isFresh = false;
    },
  };
}
