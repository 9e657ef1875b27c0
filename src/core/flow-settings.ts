/**
 * The settings of single fairness IDs: an object that names them, or a function of the host, who keeps plans in a
 * database.
 *
 * Invariant: the host's function is asked once for each fairness ID until `refresh`, or until so many others were asked
 * for that the oldest answers were forgotten. If it fails, its last answer for that fairness ID stays in force; without
 * one, the settings of the band do. It is not asked again before `refresh`, so that a database that is down is not
 * asked for every request.
 */
import { isPromise } from '../base/async-function.js';
import type { PluginErrorSink } from '../base/faults/plugin-errors.js';
import { PluginGuard } from '../base/faults/plugin-guard.js';
import type { Schema } from '../base/schema/element.js';
import { validate } from '../base/schema/parse.js';
import type { FlowProfile, FlowProfiles } from '../tiers/flow.js';

/** Profiles, as the controller keeps them. */
export interface FlowSettingsSource extends FlowProfiles {
  /** Receives failures of the host's function. */
  reportTo(errors: PluginErrorSink): void;
  /** Asks the function again when the settings are next needed. */
  refresh(fairnessId: string): void;
}

/** The settings that an object names. */
export class NamedFlows implements FlowSettingsSource {
  readonly size: number;
  readonly mayCap: boolean;
  private readonly profiles: ReadonlyMap<string, FlowProfile>;

  constructor(profiles: ReadonlyMap<string, FlowProfile>) {
    this.profiles = profiles;
    this.size = profiles.size;
    this.mayCap = [...profiles.values()].some(({ maxInFlight }) => maxInFlight !== undefined);
  }

  get(fairnessId: string): FlowProfile | undefined {
    return this.profiles.get(fairnessId);
  }

  reportTo(): void {}

  refresh(): void {}
}

interface Answer {
  readonly profile: FlowProfile | undefined;
  /** False once it was refreshed: in force only if the function fails. */
  isFresh: boolean;
}

/** The settings that the host's function tells. */
export class AskedFlows implements FlowSettingsSource {
  readonly size: number = Number.POSITIVE_INFINITY;
  readonly mayCap: boolean = true;
  private readonly answers = new Map<string, Answer>();
  private guard: PluginGuard | undefined = undefined;
  private readonly ask: (fairnessId: string) => unknown;
  private readonly schema: Schema<FlowProfile>;
  private readonly most: number;

  constructor(ask: (fairnessId: string) => unknown, schema: Schema<FlowProfile>, most: number) {
    this.ask = ask;
    this.schema = schema;
    this.most = most;
  }

  get(fairnessId: string): FlowProfile | undefined {
    const known = this.answers.get(fairnessId);
    if (known?.isFresh === true) return known.profile;
    const profile = this.answerFor(fairnessId, known);
    if (known === undefined && this.answers.size >= this.most) this.forgetOldest();
    this.answers.set(fairnessId, { profile, isFresh: true });
    return profile;
  }

  reportTo(errors: PluginErrorSink): void {
    this.guard = new PluginGuard('flows', { type: 'flows' }, errors);
  }

  refresh(fairnessId: string): void {
    const known = this.answers.get(fairnessId);
    if (known !== undefined) known.isFresh = false;
  }

  private answerFor(fairnessId: string, known: Answer | undefined): FlowProfile | undefined {
    try {
      const answer: unknown = this.ask(fairnessId);
      if (answer === undefined) return undefined;
      const verdict = isPromise(answer) ? undefined : validate(this.schema, answer);
      if (verdict?.ok === true) return verdict.value;
      const wrong = verdict?.issues.map(
        ({ path, expected }) => `${path === '' ? '' : `${path}: `}expected ${expected}`,
      );
      this.guard?.violated(
        `flows must return settings at once, or undefined${wrong === undefined ? '' : `: ${wrong.join(', ')}`}`,
        answer,
      );
    } catch (error) {
      this.guard?.failed(error);
    }
    return known?.profile;
  }

  private forgetOldest(): void {
    const oldest = this.answers.keys().next();
    if (oldest.done !== true) this.answers.delete(oldest.value);
  }
}
