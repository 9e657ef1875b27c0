/**
 * Capacity leases as a script: one hash for each limit, one field for each replica's name, and `#` for the sums. What a
 * call does is said in `lease-step.ts`, for both forms; here is how each keeps it.
 *
 *     KEYS   the hashes, all in one slot
 *     ARGV   name, incarnation, named (0 or 1), refresh, lease, drain, forget (ms), 'call' or 'leave';
 *            then for each key the figures of `toldFields`
 *     reply  for each key: incarnation, and the figures of `visit`
 */
import { type LocalTable, localTables } from '../store/local-table.js';
import { scriptHead } from '../store/script.js';
import type { StoreScript, Texts } from '../store/store.js';
import { builtLeaseStep } from './built-lease-step.js';
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

const zeros = (fields: readonly string[]): string => fields.map((name) => `${name} = 0`).join(', ');

export const leaseScript: StoreScript = {
  name: 'leases',
  farewell: leaveWith,
  local: leaseInMemory,
  text: `
${scriptHead}
local memory = {}
local function read(line)
  if not line then return nil end
  local isPacked, record = pcall(cmsgpack.unpack, line)
  finite(isPacked and type(record) == 'table' and record.held)
  return record
end
function memory.open(key, name)
  local lines = redis.call('HMGET', key, '#', name)
  return { sums = read(lines[1]), mine = read(lines[2]) }
end
function memory.replicas(key)
  local all, list = redis.call('HGETALL', key), {}
  for i = 1, #all, 2 do
    if all[i] ~= '#' then list[#list + 1] = { name = all[i], r = read(all[i + 1]) } end
  end
  return list
end
function memory.write(key, name, r) redis.call('HSET', key, name, cmsgpack.pack(r)) end
function memory.remove(key, name) redis.call('HDEL', key, name) end
function memory.begin(key)
  local all = redis.call('HGETALL', key)
  for i = 1, #all, 2 do redis.call('HDEL', key, all[i]) end
  return { ${zeros(sumFields)}, limits = {} }
end
function memory.newReplica(id) return { id = id, ${zeros(replicaFields)} } end
function memory.save(key, sums, name, r, isLater)
  redis.call('HSET', key, '#', cmsgpack.pack(sums), name, cmsgpack.pack(r))
  if isLater then redis.call('PEXPIREAT', key, text(sums.lastEnd - sums.ahead)) end
end
function memory.saveSums(key, sums) redis.call('HSET', key, '#', cmsgpack.pack(sums)) end
function memory.sort(due)
  table.sort(due, function(a, b) return a.ending < b.ending or (a.ending == b.ending and a.name < b.name) end)
end
function memory.limitsOf(sums)
  local limits = {}
  for limit in pairs(sums.limits) do limits[#limits + 1] = limit end
  return limits
end
${builtLeaseStep}
local caller = { clock = now, now = now, self = ARGV[1], id = ARGV[2], isNamed = tonumber(ARGV[3]), isLeaving = ARGV[8] == 'leave' }
for i, name in ipairs({ '${spanFields.join("', '")}' }) do caller[name] = tonumber(ARGV[3 + i]) end
local reply, at = {}, 9
for _, key in ipairs(KEYS) do
  local told = {}
  for _, name in ipairs({ '${toldFields.join("', '")}' }) do told[name], at = tonumber(ARGV[at]), at + 1 end
  reply[#reply + 1] = caller.id
  for _, figure in ipairs(visit(memory, key, caller, told)) do reply[#reply + 1] = text(figure) end
end
return reply
`,
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
  const memory = new PoolsInMemory(tables(table), nowUs);
  return keys.flatMap((key, index) => {
    const figures = told.slice(index * toldFields.length, (index + 1) * toldFields.length);
    return [id, ...visit(memory, key, caller, record(toldFields, figures)).map(String)];
  });
}

class PoolsInMemory implements LeaseMemory {
  private readonly table: LocalTable<Pool>;
  private readonly nowUs: number;
  private pool: Pool | undefined = undefined;

  constructor(table: LocalTable<Pool>, nowUs: number) {
    this.table = table;
    this.nowUs = nowUs;
  }

  open(key: string, name: string): { readonly sums: Sums | undefined; readonly mine: Replica | undefined } {
    this.pool = this.table.get(key, this.nowUs);
    return { sums: this.pool?.sums, mine: this.pool?.replicas.get(name) };
  }

  replicas(): { readonly name: string; readonly r: Replica }[] {
    return Array.from(this.pool?.replicas ?? [], ([name, r]) => ({ name, r }));
  }

  /** What was read is what is kept. */
  write(): void {}

  saveSums(): void {}

  remove(_key: string, name: string): void {
    this.pool?.replicas.delete(name);
  }

  begin(): Sums {
    const sums = { ...record(sumFields), limits: {} };
    this.pool = { replicas: new Map(), sums };
    return sums;
  }

  newReplica(id: string): Replica {
    return { id, ...record(replicaFields) };
  }

  save(key: string, { lastEnd }: Sums, name: string, r: Replica): void {
    this.pool?.replicas.set(name, r);
    if (this.pool !== undefined) this.table.set(key, this.pool, lastEnd * 1_000, this.nowUs);
  }

  sort(due: { readonly name: string; readonly ending: number }[]): void {
    due.sort((a, b) => a.ending - b.ending || (a.name < b.name ? -1 : 1));
  }

  limitsOf({ limits }: Sums): number[] {
    return Object.keys(limits).map(Number);
  }
}
