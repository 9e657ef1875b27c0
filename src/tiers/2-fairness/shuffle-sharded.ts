/** Fair by cost among queues instead of tenants: a fixed number of queues, whatever the number of tenants. */
import { type Definition, define } from '../../base/policy-definition.js';
import * as s from '../../base/schema/schema.js';
import { CostMeter } from './by-cost/cost-meter.js';
import { type CostOptions, costCodeShape, costShape } from './by-cost/cost-options.js';
import { ShardedSelector } from './by-cost/sharded-selector.js';
import { type Sharing, shareOrder, sharing } from './by-cost/share-orders.js';
import { ShareTree } from './by-cost/share-tree.js';
import { mostHashBits, requiredHashBits } from './by-cost/shuffle-sharding.js';
import type { FairnessPolicy, FlowFairnessPolicy } from './fairness-policy.js';

const type = 'shuffle-sharded-fairness-policy';

/** Queues are made beforehand, for each band. */
const mostQueues = 65_536;

interface Sharding {
  /** Queues of each band, at most 65,536. @default 64 */
  queues?: number | undefined;
  /** Queues that a tenant may use, at most `queues`; `handSize` · log2 `queues` must not exceed 60. @default 8 */
  handSize?: number | undefined;
  /** How the queues share the band. @default 'start-time-fair-queueing' */
  policy?: Sharing | undefined;
  /** Part of what a tenant's hand is dealt by: keep it secret where tenants choose their fairness IDs. @default '' */
  salt?: string | undefined;
}

export interface ShuffleShardedOptions extends CostOptions, Sharding {}

const anyText = s.value('text', (candidate) => typeof candidate === 'string');
const shardingShape = {
  queues: s.optional(s.integer({ from: 1, to: mostQueues }), 64),
  handSize: s.optional(s.positiveInteger(), 8),
  policy: s.optional(sharing, 'start-time-fair-queueing'),
  salt: s.optional(anyText, ''),
};

function handIsDealt({ queues, handSize }: { readonly queues: number; readonly handSize: number }, report: s.Report) {
  if (handSize > queues) report(`at most ${queues}, the number of queues`, ['handSize'], String(handSize));
  else if (requiredHashBits(queues, handSize) > mostHashBits) {
    const bits = `more than the ${mostHashBits} bits of a hash`;
    report(`fewer cards: ${queues} queues and hands of ${handSize} take ${bits}`, ['handSize'], String(handSize));
  }
}

const fileParameters = s.object(s.withKeys(costShape, shardingShape), handIsDealt);
const codeOptions = s.object(s.withKeys(costCodeShape, shardingShape), handIsDealt);

/**
 * Shares a band by tokens among `queues`: each tenant has a hand of them, and each request stands in the least loaded
 * one of its hand. A tenant is kept from another's burst unless their hands are the same queues, which with 64 queues
 * and hands of 8 happens once in 4·10⁹ pairs. O(1) for each request beside the policy of the queues; memory for the
 * queues and what waits, none for a tenant. Source: kubernetes, API priority and fairness, whose dealer this is; inside
 * the queues counters by cost instead of its virtual finish times. @throws FlowConfigError
 */
export function shuffleSharded(options: ShuffleShardedOptions = {}): FlowFairnessPolicy {
  const { queues, handSize, policy, salt, ...costs } = s.parse(codeOptions, options, 'shuffleSharded');
  const meter = new CostMeter(costs);
  return {
    type,
    createSelector: (band) =>
      new ShardedSelector(band, new ShareTree([() => shareOrder(policy)]), meter, queues, handSize, salt),
  };
}

export const shuffleShardedPlugin: Definition<FairnessPolicy> = define(type, fileParameters, shuffleSharded);
