/** Conditions over several options at once, shared by the constructor's schema and the configuration files'. */
import type { Report, Rule } from './element.js';

/** Bands that a controller may have at most. */
export const mostBands = 1024;
export const defaultCloseAt = 1;
export const defaultFlowIdleTimeoutMs = 300_000;

/** An entry of a list of bands while the list is being checked. */
type BandEntry = Fields<'priority', number>;
type Fields<K extends string, T> = { readonly [P in K]?: T | undefined };
type BandList<K extends string> = Fields<K, readonly BandEntry[]>;

/** The priorities at their places in the list; entries that failed have none. */
function prioritiesOf(bands: readonly (BandEntry | undefined)[] | undefined): (number | undefined)[] {
  if (!Array.isArray(bands)) return [];
  return bands.map((band) => (Number.isSafeInteger(band?.priority) ? band.priority : undefined));
}

/** Every band has a priority of its own; `key` names the list. */
/* @__NO_SIDE_EFFECTS__ */ export function distinctPriorities<const K extends string>(key: K): Rule<BandList<K>> {
  return (options, report) => {
    const firstAt = new Map<number, number>();
    prioritiesOf(options[key]).forEach((priority, index) => {
      if (priority === undefined) return;
      const first = firstAt.get(priority);
      const got = `${priority} (number), the priority of ${key}[${first}]`;
      if (first === undefined) firstAt.set(priority, index);
      else report('a priority that no other band has', [key, index, 'priority'], got);
    });
  };
}

/** The configured bands fit into `maxBands`; `key` names the list. */
/* @__NO_SIDE_EFFECTS__ */ export function roomForBands<const K extends string>(
  key: K,
): Rule<BandList<K> & Fields<'maxBands', number>> {
  return (options, report) => {
    const configured = countBands(options[key]);
    const counted = `the ${configured} configured bands, priority 0 included`;
    if (configured > mostBands) report(`at most ${mostBands} bands`, [key], counted);
    else if (options.maxBands !== undefined && options.maxBands < configured)
      report(`at least ${configured}, for ${counted}`, ['maxBands']);
  };
}

/** How many bands the list makes; priority 0 exists always. */
export function countBands(bands: readonly BandEntry[] | undefined): number {
  return new Set([0, ...prioritiesOf(bands)].filter((priority) => priority !== undefined)).size;
}

export function opensBelowClosing(levels: Fields<'closeAt' | 'openAt', number>, report: Report): void {
  const { closeAt = defaultCloseAt, openAt = closeAt } = levels;
  if (openAt > closeAt) report(`a number of at most closeAt (${closeAt})`, ['openAt']);
}

export function bandOutlivesFlows(idle: Fields<'flowIdleTimeout' | 'bandIdleTimeout', number>, report: Report): void {
  const { flowIdleTimeout = defaultFlowIdleTimeoutMs, bandIdleTimeout = flowIdleTimeout } = idle;
  if (bandIdleTimeout < flowIdleTimeout)
    report(`at least flowIdleTimeout (${flowIdleTimeout} ms)`, ['bandIdleTimeout']);
}
