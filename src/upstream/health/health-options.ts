/** The options of `watchHealth`, as given and as resolved. */
import * as s from '../../base/schema/schema.js';
import { type Clock, type EndpointView, realClock } from '../../index.js';
import { platformFetch } from '../platform-fetch.js';

/** What is used of `fetch`. */
export type HealthFetch = (
  url: string,
  init: { readonly signal: AbortSignal; readonly redirect: 'manual' },
) => Promise<{ readonly ok: boolean; readonly status: number; readonly body?: { cancel(): Promise<void> } | null }>;

export interface HealthOptions {
  /** From one round of questions to the next. A server that has not answered yet is left out. @default 2000 */
  intervalMs?: number | undefined;
  /** How long an answer may take, ms; at least twice the median of the others' last answers. @default 1000 */
  timeoutMs?: number | undefined;
  /** Checks that fail in a row before a server is ill. @default 3, as kubelet's failureThreshold */
  failures?: number | undefined;
  /** Checks that succeed in a row before it is ready again. @default 1, as kubelet's successThreshold */
  successes?: number | undefined;
  /**
   * What is done with a server that is silent while no other answers well: `keep` it, because the checks are likely at
   * fault; or take it for `ill`. That may empty the pool. Source: Envoy's panic threshold. @default 'keep'
   */
  whenAllSilent?: 'keep' | 'ill' | undefined;
  /** Where endpoints are asked, at the label `address` or else at the `id`. @default '/health' */
  path?: string | undefined;
  /** In place of `path`; undefined = this endpoint is not checked. */
  urlOf?: ((endpoint: EndpointView) => string | undefined) | undefined;
  /** @default the platform's `fetch` */
  fetch?: HealthFetch | undefined;
  /** @default realClock */
  clock?: Clock | undefined;
}

/** Every option with its value; what has no default is undefined. */
export type HealthSettings = {
  readonly [K in Exclude<keyof HealthOptions, 'urlOf'>]-?: NonNullable<HealthOptions[K]>;
} & Pick<HealthOptions, 'urlOf'>;

const healthOptions = s.object({
  intervalMs: s.optional(s.aboveZero(), 2000),
  timeoutMs: s.optional(s.aboveZero(), 1000),
  failures: s.optional(s.positiveInteger(), 3),
  successes: s.optional(s.positiveInteger(), 1),
  whenAllSilent: s.optional(s.oneOf('keep', 'ill'), 'keep'),
  path: s.optional(s.text('a path such as "/health"'), '/health'),
  urlOf: s.optional(s.callable<NonNullable<HealthOptions['urlOf']>>()),
  fetch: s.optional(s.callable<HealthFetch>()),
  clock: s.optional(s.clock(), realClock),
});

/** @throws FlowConfigError */
export function resolveHealthOptions(options: HealthOptions): HealthSettings {
  const settings = s.parse(healthOptions, options, 'watchHealth');
  return { ...settings, fetch: settings.fetch ?? platformFetch('watchHealth') };
}
