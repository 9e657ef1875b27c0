/**
 * Groups of endpoints that a band uses one after the other: own servers first, paid ones after. Placement asks which
 * groups a request may use; a part counts what went to each.
 *
 *     own ── no room, and waited 200 ms ──► paid            own ── no endpoint of it available ──► paid, at once
 *
 * Invariant: a request never goes to an endpoint outside the groups of its band.
 */
import { type GroupTurn, groupLabel } from '../../base/endpoint-turns.js';
import type { EndpointView } from '../../endpoints/endpoint.js';
import type { ItemView } from '../../tiers/views.js';
import type { ResolvedOptions } from '../options.js';
import type { Part } from './parts.js';
import type { SeatLease } from './seats.js';

type Turns = readonly GroupTurn[];
type Endpoints = readonly EndpointView[];

/** The members that stand in one of the groups; without groups, all of them. */
export function ofGroups<E extends EndpointView>(turns: Turns | undefined, endpoints: readonly E[]): readonly E[] {
  return turns === undefined ? endpoints : endpoints.filter((each) => turns.some((turn) => isOf(turn, each)));
}

function isOf({ group }: Pick<GroupTurn, 'group'>, { labels }: EndpointView): boolean {
  return labels[groupLabel] === group;
}

/** What a request may use now, group after group; and the next group, where it waits for room in those `before`. */
interface OpenGroups {
  readonly groups: readonly Endpoints[];
  readonly wait: { readonly before: string; readonly next: string; readonly atMs: number } | undefined;
}

/** The groups that the request may use now, with their members among `available`. */
export function openGroups(turns: Turns, available: Endpoints, { enqueuedAtMs }: ItemView, nowMs: number): OpenGroups {
  const groups: Endpoints[] = [];
  let before = '';
  for (const turn of turns) {
    const atMs = enqueuedAtMs + turn.afterMs;
    if (before !== '' && nowMs < atMs) return { groups, wait: { before, next: turn.group, atMs } };
    const members = available.filter((each) => isOf(turn, each));
    if (members.length === 0) continue;
    before += before === '' ? turn.group : ` and ${turn.group}`;
    groups.push(members);
  }
  return { groups, wait: undefined };
}

/** What went to a group. */
export interface GroupFigures {
  readonly group: string;
  readonly available: number;
  readonly inFlight: number;
  /** Requests ever dispatched there, and those of them for which it was not the first group of their band. */
  readonly dispatched: number;
  readonly overflowed: number;
}

export class EndpointGroups implements Part {
  private readonly counts = new Map<string, { dispatched: number; overflowed: number }>();

  /** `before`: what was counted under other options. */
  constructor(turns: Turns, before: EndpointGroups | undefined) {
    for (const { group } of turns)
      this.counts.set(group, before?.counts.get(group) ?? { dispatched: 0, overflowed: 0 });
  }

  seated({ seat, band }: SeatLease): void {
    const count = this.counts.get(seat.labels[groupLabel] ?? '');
    if (count === undefined) return;
    count.dispatched++;
    const [first] = band.settings.endpoints ?? [];
    if (first !== undefined && !isOf(first, seat)) count.overflowed++;
  }

  figures(endpoints: Endpoints, available: Endpoints): GroupFigures[] {
    return [...this.counts].map(([group, count]) => {
      const members = (of: Endpoints): Endpoints => of.filter((each) => isOf({ group }, each));
      const inFlight = members(endpoints).reduce((sum, { inFlightRequests }) => sum + inFlightRequests, 0);
      return { group, available: members(available).length, inFlight, ...count };
    });
  }
}

/** All groups that bands name. */
export function turnsIn({ bands, defaultBand, defaultNegativeBand }: ResolvedOptions): Turns {
  return [...bands, defaultBand, defaultNegativeBand].flatMap(({ endpoints }) => endpoints ?? []);
}
