/** Saturation as the share of model servers that are busy, by thresholds that can be moved while requests wait. */
import { Listeners } from '../../base/listeners.js';
import { type Definition, define } from '../../base/policy-definition.js';
import * as s from '../../base/schema/schema.js';
import type { EndpointView, RankLoad } from '../../endpoints/endpoint.js';
import type { SaturationDetector } from '../saturation-detector.js';

/** A threshold that is left out is not compared. A figure exceeds a threshold only if it is larger. */
export interface BusyThresholds {
  /** Share of a rank's KV blocks in use, 0…1. At 1 it never fires. */
  activeDecodeBlocksThreshold?: number | undefined;
  /** Prefill tokens of a rank, an integer from 0 up. */
  activePrefillTokensThreshold?: number | undefined;
  /** Prefill tokens of a rank as a multiple of its `maxNumBatchedTokens`, from 0 up. */
  activePrefillTokensThresholdFrac?: number | undefined;
}

/** A change of thresholds: a threshold that is left out stays, and null switches it off. */
export type BusyThresholdsUpdate = { readonly [K in keyof BusyThresholds]?: BusyThresholds[K] | null };

const type = 'busy-threshold-detector';

const shareOfBlocks = s.ratio();
const prefillTokens = s.integer({ from: 0 });
const shareOfBatch = s.atLeastZero();

const schema: s.Schema<BusyThresholds> = s.object({
  activeDecodeBlocksThreshold: s.optional(shareOfBlocks),
  activePrefillTokensThreshold: s.optional(prefillTokens),
  activePrefillTokensThresholdFrac: s.optional(shareOfBatch),
});

/** The schema is made for each update, because updates are rare, and most detectors need none. */
function updateSchema(): s.Schema<BusyThresholdsUpdate> {
  return s.object({
    activeDecodeBlocksThreshold: s.optional(s.orNull(shareOfBlocks)),
    activePrefillTokensThreshold: s.optional(s.orNull(prefillTokens)),
    activePrefillTokensThresholdFrac: s.optional(s.orNull(shareOfBatch)),
  });
}

/** Stands for a `maxNumBatchedTokens` that was never reported. */
const unknownBatchedTokens = 10_000_000;

export interface BusyThresholdDetector extends SaturationDetector {
  /** The thresholds in force. */
  readonly thresholds: Readonly<BusyThresholds>;
  /** Changes thresholds; waiting requests are looked at again at once. @throws FlowConfigError; nothing has changed. */
  update(change: BusyThresholdsUpdate): void;
  isBusy(endpoint: EndpointView): boolean;
}

/**
 * Busy servers over servers, by weight: full when all are busy. A rank is busy when one of its figures exceeds a
 * threshold; a figure that is not known is not looked at. A server is busy when all its ranks are, so that one without
 * known ranks is free. `filter` keeps the free ones. O(endpoints · ranks).
 * Differs from Dynamo: a moved threshold counts at once, not from a server's next report on.
 * Source: Dynamo, request rejection and its worker monitor. @throws FlowConfigError
 */
export function busyThresholdDetector(options: BusyThresholds = {}): BusyThresholdDetector {
  let thresholds: Readonly<BusyThresholds> = Object.freeze({ ...s.parse(schema, options, 'busyThresholdDetector') });
  const { subscribe, announce } = new Listeners();

  function isRankBusy({ activePrefillTokens, totalBlocks, maxNumBatchedTokens, ...blocks }: RankLoad): boolean {
    const { activePrefillTokensThreshold: tokens, activePrefillTokensThresholdFrac: frac } = thresholds;
    const share = thresholds.activeDecodeBlocksThreshold;
    if (activePrefillTokens !== undefined) {
      if (tokens !== undefined && activePrefillTokens > tokens) return true;
      if (frac !== undefined && activePrefillTokens > Math.floor(frac * (maxNumBatchedTokens ?? unknownBatchedTokens)))
        return true;
    }
    if (share === undefined || totalBlocks === undefined || totalBlocks === 0) return false;
    const usedBlocks = Math.max(blocks.activeDecodeBlocks ?? 0, blocks.kvUsedBlocks ?? 0);
    return usedBlocks > share * totalBlocks;
  }
  function isBusy({ metrics }: EndpointView): boolean {
    const ranks = metrics?.ranks;
    return ranks !== undefined && ranks.length > 0 && ranks.every(isRankBusy);
  }

  return {
    type,
    needsPool: true,
    get thresholds() {
      return thresholds;
    },
    isBusy,
    update(change) {
      const moved = s.parse(updateSchema(), change, 'busyThresholdDetector.update');
      const next = Object.entries({ ...thresholds, ...moved }).filter(([, threshold]) => threshold !== null);
      thresholds = Object.freeze(Object.fromEntries(next));
      announce();
    },
    saturation(pool) {
      const { endpoints } = pool;
      let busy = 0;
      let total = 0;
      for (const endpoint of endpoints) {
        total += endpoint.weight;
        if (isBusy(endpoint)) busy += endpoint.weight;
      }
      return endpoints.length === 0 ? 1 : busy / total;
    },
    filter: (endpoints) => endpoints.filter((endpoint) => !isBusy(endpoint)),
    /** The controller sees reports and changes of the pool; it does not see changes of thresholds. */
    subscribe,
  };
}

export const busyThresholdDetectorPlugin: Definition<SaturationDetector> = define(type, schema, busyThresholdDetector);
