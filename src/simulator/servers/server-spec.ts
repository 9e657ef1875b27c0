/** Servers as a scenario writes them. */
import * as s from '../../base/schema/schema.js';
import type { Schema } from '../../index.js';
import { type Distribution, distribution } from '../random/distributions.js';
import { oneOfShapes, type Shapes } from '../schemas.js';
import { type ContinuousBatchingOptions, continuousBatching } from './continuous-batching.js';
import type { ServerFactory } from './sim-server.js';
import { type SlotsOptions, slots } from './slots.js';
import { type ServerPrice, serverPrice } from './spend.js';
import { type VtcServingOptions, vtcServing } from './vtc-serving.js';

interface Common {
  /** Servers of this kind; with more than one their names end in -0, -1 and so on. @default 1 */
  readonly count?: number | undefined;
  /** @default 'server' */
  readonly name?: string | undefined;
  /** Labels of the endpoint, for filters and groups. @default none */
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** What it costs. @default nothing is told of cost */
  readonly price?: ServerPrice | undefined;
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
  model: s.anything(),
  count: s.optional(s.positiveInteger()),
  name: s.optional(s.text('a name')),
  labels: s.optional(s.record(s.text())),
  price: s.optional(serverPrice),
};
const timeAboveZero: Schema<Distribution> = distribution(s.durationAboveZero('100ms'));

const shapes: Shapes<ServerSpec['model']> = {
  slots: s.object({ ...common, slots: s.positiveInteger(), serviceTime: s.optional(timeAboveZero) }),
  'continuous-batching': s.object({
    ...common,
    ...s.optionals(s.positiveInteger(), 'kvTokens', 'blockTokens', 'maxSequences', 'maxBatchedTokens'),
    stepMs: s.optional(s.aboveZero()),
    ...s.optionals(s.atLeastZero(), 'decodeMs', 'kvTokenMs', 'prefillTokenMs', 'overheadMs'),
  }),
  'vtc-serving': s.object({
    ...common,
    ...s.optionals(s.positiveInteger(), 'kvTokens', 'maxPromptTokens', 'stepsBetweenBatches'),
    timeFactor: s.optional(s.aboveZero()),
  }),
  custom: s.object({ ...common, create: s.callable<ServerFactory>() }),
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
