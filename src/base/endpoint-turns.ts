/** The groups of endpoints that a band uses, one after the other: `[own, { group: paid, after: 200ms }]`. */
import type { Duration } from './schema/duration.js';
import * as s from './schema/schema.js';

/** The label that names the group of an endpoint. */
export const groupLabel = 'group';

/** A group of endpoints; a name alone is one without `after`. */
export interface EndpointGroup {
  /** The label `group` of its endpoints. */
  group: string;
  /** How long a request waits first, unless no endpoint of the groups before it is available. @default 0 */
  after?: Duration | undefined;
}

export interface GroupTurn {
  readonly group: string;
  readonly afterMs: number;
}

/** A list of groups, in the order in which they are tried. `after` reads a span of time. */
/* @__NO_SIDE_EFFECTS__ */ export function endpointTurns(after: s.Schema<number>): s.Schema<readonly GroupTurn[]> {
  const name = s.text('the name of a group of endpoints');
  const entry = s.object({ group: name, after: s.optional(after, 0) });
  const turn = s.element<GroupTurn>(
    (given, report) => {
      if (typeof given !== 'object') return { group: s.readBy(name, given, report) ?? '', afterMs: 0 };
      const read = s.readBy(entry, given, report);
      return read && { group: read.group, afterMs: read.after };
    },
    (of) => ({ anyOf: [of(name), of(entry)] }),
  );
  return s.element<readonly GroupTurn[]>(
    (given, report) => {
      const turns = s.readBy(s.list(turn), given, report);
      if (turns?.length === 0) report('at least one group of endpoints', [], 'an empty list');
      for (const [index, { group, afterMs }] of turns?.entries() ?? []) {
        const leastMs = turns?.[index - 1]?.afterMs ?? 0;
        if (turns?.findIndex((other) => other.group === group) !== index)
          report('a group that does not stand before', [index], JSON.stringify(group));
        if (index === 0 && afterMs > 0) report('no after, because the first group is used at once', [0, 'after']);
        if (afterMs < leastMs) report(`at least the ${leastMs} ms of the group before it`, [index, 'after']);
      }
      return turns;
    },
    (of) => ({ type: 'array', items: of(turn), minItems: 1 }),
  );
}
