/** The options of `quotaDetector()`, for hosts and for files. */
import type { WindowKind } from '../../base/quota-window.js';
import * as s from '../../base/schema/schema.js';
import type { ItemView } from '../../tiers/views.js';
import type { QuotaUnit } from './rate-limit-headers.js';

/** A limit of a provider: so many units in so much time. */
export interface QuotaOptions {
  /** The thing that is counted. `tokens`: input and output together. `cost`: by `prices`, or what `estimate` says. */
  unit: QuotaUnit;
  /** Units in `per`, above 0. */
  limit: number;
  /** The span of the limit, ms or a duration. @default '1m' */
  per?: number | string | undefined;
  /** Units that may go at once, above 0; only for `gcra`. @default limit */
  burst?: number | undefined;
  /**
   * `gcra`: units come back all the time, at `limit ÷ per`. `fixed`: all of them come back at the end of a window.
   * `sliding`: each comes back `per` after it was taken; right for any provider, because no span of `per` ever holds
   * more than the limit. @default 'gcra'
   */
  window?: WindowKind | undefined;
}

/** A group that shares quotas. Without further keys: the whole pool. */
export interface QuotaGroupOptions {
  /** The name in figures and sentences. @default the kind of the group, and its endpoint, label or model */
  name?: string | undefined;
  /**
   * `pool`: one group for all. `endpoint`: one for each endpoint. `label`: one for each value of the label `label`,
   * such as the account that several keys belong to; endpoints without the label are in none. @default 'pool'
   */
  by?: 'pool' | 'endpoint' | 'label' | undefined;
  /** The label. */
  label?: string | undefined;
  /** Only the endpoint, or the value of the label, of this name. */
  is?: string | undefined;
  /** Only requests for these models; `gpt-4o*` is a family. The model is the field `model` of the request. */
  models?: string[] | undefined;
  /** Whether each model has the quotas for itself. @default false */
  perModel?: boolean | undefined;
  /** A request takes from all of them at once, or from none. @default []: the quotas that answers tell */
  quotas?: QuotaOptions[] | undefined;
  /** Whether the group learns from answers. An answer applies to the first group that learns. @default true */
  learn?: boolean | undefined;
}

/** Prices, for the unit `cost`: for a million tokens, in any currency. */
export interface TokenPrices {
  input: number;
  output: number;
}

/** Parameters that a configuration file can hold. */
export interface QuotaParameters {
  /** @default one group for each endpoint, with what answers tell */
  groups?: QuotaGroupOptions[] | undefined;
  /**
   * The tokens reserved for the answer. `max-tokens`: as many as the request allows itself (`maxOutputTokens`), which
   * no answer exceeds. `average`: the average length of the model's last answers to this tenant, at most
   * `maxOutputTokens`. Each falls back to the other, then to `defaultOutputTokens`. @default 'max-tokens'
   */
  output?: 'max-tokens' | 'average' | undefined;
  /** Reserved for an answer of which nothing is known, tokens. @default 1024 */
  defaultOutputTokens?: number | undefined;
  prices?: TokenPrices | undefined;
  /** Whether a request that cannot go within its time to live is dropped at once, with a time. @default true */
  rejectInfeasible?: boolean | undefined;
  /**
   * How much later than it was sent a provider may count a request, ms or a duration. Windows of `fixed` and `sliding`
   * last this much longer. The burst of `gcra` is smaller by what comes back in this time. @default '250ms'
   */
  travel?: number | string | undefined;
  /** How long a group rests after a 429 or 529 that does not say; doubled while it goes on. @default '5s' */
  cooldown?: number | string | undefined;
  /** The longest rest after refusals that do not say how long. @default '5m' */
  maxCooldown?: number | string | undefined;
}

/** The expected consumption of a request. Figures that are left out are estimated. */
export interface QuotaEstimate {
  inputTokens?: number | undefined;
  outputTokens?: number | undefined;
  tokens?: number | undefined;
  cost?: number | undefined;
}

export interface QuotaDetectorOptions<R = unknown> extends QuotaParameters {
  /** Tells the expected consumption. @default by the fields `tokens`, `inputTokens`, `maxOutputTokens`, `model` */
  estimate?: ((item: ItemView<R>) => QuotaEstimate) | undefined;
  /** Numbers from 0 to less than 1, for the jitter of cooldowns. @default Math.random */
  random?: (() => number) | undefined;
  /** The calendar, ms of the Unix epoch, for instants in headers of answers that bear no date. @default Date.now */
  wallClock?: (() => number) | undefined;
}

export type ResolvedQuota = s.Filled<Omit<QuotaOptions, 'per'>, 'burst'> & { readonly per: number };

export interface ResolvedGroup extends s.Filled<Omit<QuotaGroupOptions, 'quotas'>, 'name' | 'label' | 'is' | 'models'> {
  readonly quotas: ResolvedQuota[];
}

type Spans = Readonly<Record<'travel' | 'cooldown' | 'maxCooldown', number>>;

/** The default of the groups needs code. */
interface ResolvedParameters extends Spans, s.Filled<Omit<QuotaParameters, 'groups' | keyof Spans>, 'prices'> {
  readonly groups?: ResolvedGroup[] | undefined;
}

type Code = s.Filled<Pick<QuotaDetectorOptions, 'estimate' | 'random' | 'wallClock'>, 'estimate'>;
export type ResolvedQuotaOptions = ResolvedParameters & Code;

const quota: s.Schema<ResolvedQuota> = s.object(
  {
    unit: s.oneOf('requests', 'inputTokens', 'outputTokens', 'tokens', 'cost'),
    limit: s.aboveZero(),
    per: s.optional(s.positiveDuration('1m'), 60_000),
    burst: s.optional(s.aboveZero()),
    window: s.optional(s.oneOf('gcra', 'fixed', 'sliding'), 'gcra'),
  },
  ({ burst, window }, report) => {
    if (burst !== undefined && window !== 'gcra')
      report('no burst, because only a gcra window has one', ['burst'], `one of a ${window} window`);
  },
);

const group: s.Schema<ResolvedGroup> = s.object(
  {
    name: s.optional(s.text()),
    by: s.optional(s.oneOf('pool', 'endpoint', 'label'), 'pool'),
    label: s.optional(s.text()),
    is: s.optional(s.text()),
    models: s.optional(s.list(s.text())),
    perModel: s.optional(s.flag(), false),
    quotas: s.optional(s.list(quota), []),
    learn: s.optional(s.flag(), true),
  },
  isNamedByItsLabel,
);

function isNamedByItsLabel({ by, label, is }: QuotaGroupOptions, report: s.Report): void {
  if (by === 'label' && label === undefined) report('the name of the label that the group is by', ['label'], 'none');
  if (by !== 'label' && label !== undefined)
    report('no label, because the group is by none', ['label'], JSON.stringify(label));
  if (by === 'pool' && is !== undefined)
    report('nothing, because the group is the whole pool', ['is'], JSON.stringify(is));
}

const shape = {
  groups: s.optional(s.list(group)),
  output: s.optional(s.oneOf('max-tokens', 'average'), 'max-tokens'),
  defaultOutputTokens: s.optional(s.atLeastZero(), 1024),
  prices: s.optional(s.object({ input: s.atLeastZero(), output: s.atLeastZero() })),
  rejectInfeasible: s.optional(s.flag(), true),
  travel: s.optional(s.duration('250ms'), 250),
  cooldown: s.optional(s.positiveDuration('5s'), 5000),
  maxCooldown: s.optional(s.positiveDuration('5m'), 300_000),
};

/** The group if none is given: one for each endpoint, with the quotas that its answers tell. */
export const groupOfEachEndpoint: ResolvedGroup = { by: 'endpoint', perModel: false, quotas: [], learn: true };

export const quotaParameters: s.Schema<ResolvedParameters> = /* @__PURE__ */ s.object(shape);

export const quotaOptions: s.Schema<ResolvedQuotaOptions> = /* @__PURE__ */ s.object(
  s.withKeys(shape, {
    estimate: s.optional(
      s.callable<(item: ItemView) => QuotaEstimate>('a function of the waiting request that returns figures'),
    ),
    random: s.optional(s.callable<() => number>(), () => Math.random()),
    wallClock: s.optional(s.callable<() => number>(), () => Date.now()),
  }),
);
