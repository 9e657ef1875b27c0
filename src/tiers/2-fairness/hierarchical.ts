/** Fair by cost at every level: organisations share the band, their projects its part, and keys the projects'. */
import { type Definition, define } from '../../base/policy-definition.js';
import * as s from '../../base/schema/schema.js';
import { costFairPolicy } from './by-cost/cost-fair-selector.js';
import { CostMeter } from './by-cost/cost-meter.js';
import { type CostOptions, costCodeShape, costShape, leastWeight, mostCost } from './by-cost/cost-options.js';
import { type Sharing, shareOrder, sharing } from './by-cost/share-orders.js';
import type { FairnessPolicy, FlowFairnessPolicy } from './fairness-policy.js';

const type = 'hierarchical-fairness-policy';

/** The last name of a deeper path is made of the rest of it. */
const mostLevels = 4;

interface Levels {
  /** How the members of each level share, from the top; one to four. @default three times 'virtual-token-counter' */
  levels?: Sharing[] | undefined;
  /** The text between the names of a fairness ID. @default '/' */
  separator?: string | undefined;
  /**
   * Weights above the last level, by path: `{ acme: 2, 'acme/search': 3 }`, from 1e-6 to 2^53. Weights of the last
   * level are an error here: they are the weights of flows, or `weightOf`. @default 1
   */
  weights?: Record<string, number> | undefined;
}

export interface HierarchicalOptions extends CostOptions, Levels {
  /** The names of a fairness ID from the top. @default its parts between separators */
  pathOf?: ((fairnessId: string) => readonly string[]) | undefined;
}

type PathOf = NonNullable<HierarchicalOptions['pathOf']>;

const threeLevels: Sharing[] = ['virtual-token-counter', 'virtual-token-counter', 'virtual-token-counter'];

const levelShape = {
  levels: s.optional(s.list(sharing), threeLevels),
  separator: s.optional(s.text(), '/'),
  weights: s.optional(s.record(s.number({ from: leastWeight, to: mostCost })), {}),
};

/** `pathOf` may return names with the separator in them: with it, no path is known to be too long. */
function levelsFit({ levels, separator, weights, pathOf }: HierarchicalOptions, report: s.Report): void {
  if (!Array.isArray(levels)) return;
  if (levels.length < 1 || levels.length > mostLevels) {
    report(`one to ${mostLevels} policies`, ['levels'], String(levels.length));
    return;
  }
  if (pathOf !== undefined || typeof separator !== 'string' || typeof weights !== 'object') return;
  for (const path of Object.keys(weights)) {
    if (path.split(separator).length < levels.length) continue;
    report(`a path above the last of ${levels.length} levels, which has the weights of flows`, ['weights', path]);
  }
}

const fileParameters = s.object(s.withKeys(costShape, levelShape), levelsFit);
const codeShape = s.withKeys(s.withKeys(costCodeShape, levelShape), { pathOf: s.optional(s.callable<PathOf>()) });
const codeOptions = s.object(codeShape, levelsFit);

/** A name a level, so that no paths are equal: given ones begin with `=`, missing are empty, the last has the rest. */
function namesFor(path: readonly string[], levels: number, joinRest: (rest: readonly string[]) => string): string[] {
  const names: string[] = [];
  for (let level = 0; level < levels; level++) {
    const isDeeper = level === levels - 1 && path.length > levels;
    if (isDeeper) names.push(`+${joinRest(path.slice(level))}`);
    else names.push(level < path.length ? `=${path[level]}` : '');
  }
  return names;
}

function isPath(path: unknown): path is string[] {
  return Array.isArray(path) && path.length > 0 && path.every((name) => typeof name === 'string');
}

/**
 * Shares a band by tokens from the top down: `acme/search/key-7` is a key of a project of an organisation, each level
 * is shared by a policy of the family, and a request is charged at every level of its path. However many keys an
 * organisation makes, it has one share. O(levels · log members). Source: hierarchical start-time fair queueing (Goyal,
 * Guo and Vin, OSDI '96). @throws FlowConfigError
 * @example
 * const fairness = hierarchical({ levels: ['virtual-token-counter', 'virtual-token-counter'], weights: { acme: 2 } });
 */
export function hierarchical(options: HierarchicalOptions = {}): FlowFairnessPolicy {
  const { levels, separator, weights, pathOf, ...costs } = s.parse(codeOptions, options, 'hierarchical');
  const meter = new CostMeter(costs);
  const weightByPath = new Map(Object.entries(weights));
  const orders = levels.map((sharing) => () => shareOrder(sharing));
  const joinRest = (rest: readonly string[]): string =>
    pathOf === undefined ? rest.join(separator) : JSON.stringify(rest);
  return costFairPolicy(type, meter, orders, {
    weightOf: (names) => weightByPath.get(names.map((name) => name.slice(1)).join(separator)) ?? 1,
    pathOf(fairnessId) {
      if (pathOf === undefined) return namesFor(fairnessId.split(separator), levels.length, joinRest);
      const path = meter.guard(() => pathOf(fairnessId));
      if (isPath(path)) return namesFor(path, levels.length, joinRest);
      meter.blame('pathOf', 'an array of one or more names', JSON.stringify(path));
      return namesFor([fairnessId], levels.length, joinRest);
    },
  });
}

export const hierarchicalPlugin: Definition<FairnessPolicy> = define(type, fileParameters, hierarchical);
