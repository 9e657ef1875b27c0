/**
 * Capacity leases as a script: one hash for each limit, one field for each replica's name, and `#` for the sums. What a
 * call does is said in `lease-step.ts`, for both forms; here is how each keeps it.
 *
 *     KEYS   the hashes, all in one slot
 *     ARGV   name, incarnation, named (0 or 1), refresh, lease, drain, forget (ms), 'call' or 'leave';
 *            then for each key the figures of `toldFields`
 *     reply  for each key: incarnation, and the figures of `visit`
 */

import { builtScripts } from '../store/built-scripts.js';
import { type LocalTable, localTables } from '../store/local-table.js';
import type { StoreScript, Texts } from '../store/store.js';
import {
  type Caller,
  type LeaseMemory,
  type Replica,
  replicaFields,
  type Sums,
  spanFields,
  sumFields,
  toldFields,
  visit,
} from './lease-step.js';

export const leaseScript: StoreScript = {
  name: 'leases',
  farewell: leaveWith,
  local: leaseInMemory,
  text: builtScripts.leases,
};

/** The same incarnation leaves, with nothing in flight: for one that is known to be gone. */
function leaveWith(args: readonly string[]): string[] {
  const keys = (args.length - 8) / toldFields.length;
  const figures = [String(Number.MAX_SAFE_INTEGER), ...toldFields.slice(1).map(() => '0')];
  return [...args.slice(0, 7), 'leave', ...Array.from({ length: keys }, () => figures).flat()];
}

interface Pool {
  readonly replicas: Map<string, Replica>;
  readonly sums: Sums;
}

const tables = localTables<Pool>();

function record<F extends string>(fields: readonly F[], numbers: readonly string[] = []): Record<F, number> {
  return Object.fromEntries(fields.map((field, at) => [field, Number(numbers[at] ?? 0)])) as Record<F, number>;
}

/** The script's form for the memory of a process. */
function leaseInMemory(table: object, keys: Texts, args: Texts, nowUs: number): string[] {
  const [self = '', id = '', isNamed, ...rest] = args;
  const [operation, ...told] = rest.slice(spanFields.length);
  const clock = Math.floor(nowUs / 1_000);
  const who = { clock, now: clock, self, id, isNamed: Number(isNamed), isLeaving: operation === 'leave' };
  const caller: Caller = { ...who, ...record(spanFields, rest), isLasting: 'isLasting' in table, hasSwept: false };
  const memory = memoryOf(tables(table), nowUs);
  return keys.flatMap((key, index) => {
    const figures = told.slice(index * toldFields.length, (index + 1) * toldFields.length);
    return [id, ...visit(memory, key, caller, record(toldFields, figures)).map(String)];
  });
}

/** What was read is what is kept. */
function memoryOf(table: LocalTable<Pool>, nowUs: number): LeaseMemory {
  let pool: Pool | undefined;
  return {
    open(key, name) {
      pool = table.get(key, nowUs);
      return { sums: pool?.sums, mine: pool?.replicas.get(name) };
    },
    replicas: () => Array.from(pool?.replicas ?? [], ([name, r]) => ({ name, r })),
    write() {},
    saveSums() {},
    remove: (_key, name) => void pool?.replicas.delete(name),
    begin() {
      pool = { replicas: new Map(), sums: { ...record(sumFields), limits: {} } };
      return pool.sums;
    },
    newReplica: (id) => ({ id, ...record(replicaFields) }),
    save(key, { lastEnd }, name, r) {
      pool?.replicas.set(name, r);
      if (pool !== undefined) table.set(key, pool, lastEnd * 1_000, nowUs);
    },
    sort: (due) => void due.sort((a, b) => a.ending - b.ending || (a.name < b.name ? -1 : 1)),
    limitsOf: ({ limits }) => Object.keys(limits).map(Number),
  };
}
