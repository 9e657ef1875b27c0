/** Servers as a scenario writes them. */
import { anything, callable, object, optional, record } from '../../base/schema/element.js';
import { aboveZero, atLeastZero, durationAboveZero, positiveInteger, text } from '../../base/schema/types.js';
import type { Schema } from '../../index.js';
import { oneOfShapes, type Shapes } from '../one-of-shapes.js';
import { type Distribution, distribution } from '../random/distributions.js';
import { type ContinuousBatchingOptions, continuousBatching } from './continuous-batching.js';
import type { ServerFactory } from './sim-server.js';
import { type SlotsOptions, slots } from './slots.js';
import { type VtcServingOptions, vtcServing } from './vtc-serving.js';

interface Common {
  /** Servers of this kind; with more than one their names end in -0, -1 and so on. @default 1 */
  readonly count?: number | undefined;
  /** @default 'server' */
  readonly name?: string | undefined;
  /** Labels of the endpoint, for filters. @default none */
  readonly labels?: Readonly<Record<string, string>> | undefined;
}

/** One kind of server. `custom` is for code: any model that keeps the contract of `SimServer`. */
export type ServerSpec = Common &
  (
    | ({ readonly model: 'slots' } & SlotsOptions)
    | ({ readonly model: 'continuous-batching' } & ContinuousBatchingOptions)
    | ({ readonly model: 'vtc-serving' } & VtcServingOptions)
    | { readonly model: 'custom'; readonly create: ServerFactory }
  );

const common = {
  model: anything(),
  count: optional(positiveInteger()),
  name: optional(text('a name')),
  labels: optional(record(text())),
};
const timeAboveZero: Schema<Distribution> = distribution(durationAboveZero('100ms'));

const shapes: Shapes<ServerSpec['model']> = {
  slots: object({ ...common, slots: positiveInteger(), serviceTime: optional(timeAboveZero) }),
  'continuous-batching': object({
    ...common,
    kvTokens: optional(positiveInteger()),
    blockTokens: optional(positiveInteger()),
    maxSequences: optional(positiveInteger()),
    maxBatchedTokens: optional(positiveInteger()),
    stepMs: optional(aboveZero()),
    decodeMs: optional(atLeastZero()),
    kvTokenMs: optional(atLeastZero()),
    prefillTokenMs: optional(atLeastZero()),
    overheadMs: optional(atLeastZero()),
  }),
  'vtc-serving': object({
    ...common,
    kvTokens: optional(positiveInteger()),
    maxPromptTokens: optional(positiveInteger()),
    stepsBetweenBatches: optional(positiveInteger()),
    timeFactor: optional(aboveZero()),
  }),
  custom: object({ ...common, create: callable<ServerFactory>() }),
};

export const serverSpec: Schema<ServerSpec> = oneOfShapes('model', shapes);

export function factoryOf(spec: ServerSpec): ServerFactory {
  switch (spec.model) {
    case 'slots':
      return slots(spec);
    case 'continuous-batching':
      return continuousBatching(spec);
    case 'vtc-serving':
      return vtcServing(spec);
    case 'custom':
      return spec.create;
  }
}

export function namesOf({ name = 'server', count = 1 }: ServerSpec): string[] {
  return count === 1 ? [name] : Array.from({ length: count }, (_, index) => `${name}-${index}`);
}
