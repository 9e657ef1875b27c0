/**
 * The protocol of capacity leases, the store's side: one hash for each pool, one field for each replica.
 *
 *     KEYS  the hashes, all in one slot
 *     ARGV  replica, lease, drain, forget (ms), 'call' or 'leave';
 *           then for each key: sequence, acknowledged, limit, weight, cap, in flight, wants, safe share, and of the last answer that
 *           this replica got the epoch and the pool's weight (0 and 0 before the first)
 *     reply for each key: replica, sequence, grant, safe share, epoch, learning (0 or 1), replicas, limit, largest limit, held, target,
 *           and the pool's weight
 *
 * Invariant: no call makes the sum of `held` rise above the limit. So a replica that uses its grant, or the cap that it
 * reported, keeps the pool below its limit. `held` covers both, because the reply that carries the grant may be lost.
 *
 * A store that has lost what it knew begins an epoch, and learns it from the replicas' calls: nobody's share grows
 * for one lease. The first to call tell how much weight the pool had. Weight that has not called again by then is
 * absent, and may still run requests. No share grows until its drain is over. After that its fair part is kept for it,
 * as for a replica that fell silent when the epoch began. Source: max-min fairness by progressive filling, Bertsekas
 * and Gallager, "Data Networks" (1992), 6.5.
 */
import { scriptHead } from '../store/script.js';
import type { StoreScript } from '../store/store.js';
import { numbersOf } from '../store/store-link.js';
import type { StoreProblem } from '../store/store-problem.js';
import type { CapacityLease, Grant } from './capacity-lease.js';
import { leaseInMemory } from './lease-in-memory.js';

/** The number of texts in the reply for each key. */
export const replyWidth = 12;

export const leaseScript: StoreScript = {
  name: 'leases',
  farewell: leaveWith,
  local: leaseInMemory,
  text: `
${scriptHead}
local self, lease, drain, forget, isLeaving = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5] == 'leave'

-- "grant held wants sequence limit weight safe leaseEnd drainEnd forgetEnd"
local function read(id, line)
  local held, wants, sequence, limit, weight, safe, leaseEnd, drainEnd, forgetEnd =
    string.match(line, '^%S+ (%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+)$')
  return { id = id, held = finite(held), wants = finite(wants), sequence = finite(sequence), limit = finite(limit),
    weight = finite(weight), safe = finite(safe), leaseEnd = finite(leaseEnd), drainEnd = finite(drainEnd),
    forgetEnd = finite(forgetEnd) }
end

local function write(key, r, grant)
  local line = {}
  for i, number in ipairs({ grant, r.held, r.wants, r.sequence, r.limit, r.weight, r.safe, r.leaseEnd, r.drainEnd, r.forgetEnd }) do
    line[i] = text(number)
  end
  redis.call('HSET', key, r.id, table.concat(line, ' '))
end

local function readEpoch(line)
  local began, learnsUntil, drainEnd, forgetEnd, expected, called = string.match(line, '^(%S+) (%S+) (%S+) (%S+) (%S+) (%S+)$')
  return began and { began = finite(began), learnsUntil = finite(learnsUntil), drainEnd = finite(drainEnd), forgetEnd = finite(forgetEnd),
    expected = finite(expected), called = finite(called) }
end

-- "began learnsUntil drainEnd forgetEnd expected called": the weight that the pool had, and that of the replicas that have called since.
local function writeEpoch(key, e)
  local line = {}
  for i, number in ipairs({ e.began, e.learnsUntil, e.drainEnd, e.forgetEnd, e.expected, e.called }) do line[i] = text(number) end
  redis.call('HSET', key, '#', table.concat(line, ' '))
end

-- Sets target of each replica: what it wants, 1 at least, as far as the room goes by weight; the rest is spread by weight.
local function fill(room, live)
  table.sort(live, function(a, b)
    local x, y = math.max(a.wants, 1) / a.weight, math.max(b.wants, 1) / b.weight
    if x == y then return a.id < b.id end
    return x < y
  end)
  local weight = 0
  for _, r in ipairs(live) do weight = weight + r.weight; r.target = 0 end
  for pass = 1, 2 do
    local left = weight
    for _, r in ipairs(live) do
      local fair = math.floor(room * r.weight / left)
      local given = pass == 1 and math.min(math.max(r.wants, 1), fair) or fair
      r.target = r.target + given
      room, left = room - given, left - r.weight
    end
  end
end

local function visit(key, at)
  local mine = { id = self, sequence = tonumber(ARGV[at]), limit = tonumber(ARGV[at + 2]), weight = tonumber(ARGV[at + 3]),
    wants = tonumber(ARGV[at + 6]), safe = 0, leaseEnd = now + lease, drainEnd = now + lease + drain, forgetEnd = now + lease + drain + forget }
  local acknowledged, cap, inFlight, safeInUse = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 4]), tonumber(ARGV[at + 5]), tonumber(ARGV[at + 7])
  local rememberedEpoch, rememberedWeight = tonumber(ARGV[at + 8]), tonumber(ARGV[at + 9])
  local before, epoch
  local others, live, otherWeight, lastEnd = {}, { mine }, 0, mine.forgetEnd
  local all = redis.call('HGETALL', key)
  for i = 1, #all, 2 do
    local id, line = all[i], all[i + 1]
    if id == '#' then
      epoch = readEpoch(line)
    elseif id == self then
      before = read(id, line)
    else
      local r = read(id, line)
      if now > r.forgetEnd then
        redis.call('HDEL', key, id)
      else
        others[#others + 1] = r
        otherWeight = otherWeight + r.weight
        if now <= r.leaseEnd then live[#live + 1] = r end
        lastEnd = math.max(lastEnd, r.forgetEnd)
      end
    end
  end
  -- A delayed call, or its duplicate: the reply is of no use, and changes nothing.
  if before and mine.sequence <= before.sequence then
    return { self, text(before.sequence), '-1', '0', text(epoch.began), '0', '0', '0', '0', '0', '0', '0' }
  end
  -- A store that knows less than it acknowledged has lost writes, of this replica and perhaps of others.
  local hasLost = acknowledged > 0 and (before == nil or before.sequence < acknowledged)
  if epoch == nil or (hasLost and now >= epoch.learnsUntil) then
    epoch = { began = math.max(now, epoch and epoch.began + 1 or 0), learnsUntil = now + lease, drainEnd = mine.drainEnd,
      forgetEnd = mine.forgetEnd, expected = 0, called = otherWeight + (before and mine.weight or 0) }
    writeEpoch(key, epoch)
  end
  if rememberedEpoch > 0 and rememberedEpoch ~= epoch.began then
    epoch.expected = math.max(epoch.expected, rememberedWeight)
    if before == nil then epoch.called = epoch.called + mine.weight end
    writeEpoch(key, epoch)
  end
  local absent = now <= epoch.forgetEnd and math.max(0, epoch.expected - epoch.called) or 0
  local isLearning = now < epoch.learnsUntil or (absent > 0 and now <= epoch.drainEnd)
  local held, silent, limit, largest, weights = 0, 0, mine.limit, mine.limit, mine.weight
  for _, r in ipairs(others) do
    local holds = now <= r.drainEnd and r.held or r.safe
    held = held + holds
    if now <= r.leaseEnd then
      limit, largest, weights = math.min(limit, r.limit), math.max(largest, r.limit), weights + r.weight
    else
      silent = silent + holds
    end
  end
  if absent > 0 and not isLearning then
    local kept = math.ceil(limit * absent / epoch.expected)
    held, silent = held + kept, silent + kept
  end
  local grant, safe = 0, 0
  if isLeaving then
    mine.wants, mine.held, mine.leaseEnd, mine.drainEnd, mine.forgetEnd = 0, inFlight, now - 1, now + drain, now + drain
    if inFlight == 0 then redis.call('HDEL', key, self) else write(key, mine, 0) end
  else
    fill(math.max(0, limit - silent), live)
    grant = math.max(0, math.min(mine.target, limit - held))
    if isLearning then grant = math.min(grant, cap) end
    mine.held = math.max(grant, cap, inFlight)
    safe = math.min(grant, math.floor(limit * mine.weight / weights))
    mine.safe = math.max(safe, safeInUse)
    write(key, mine, grant)
    held = held + mine.held
  end
  redis.call('PEXPIREAT', key, text(lastEnd))
  return { self, text(mine.sequence), text(grant), text(safe), text(epoch.began), isLearning and '1' or '0', text(#live),
    text(limit), text(largest), text(held), text(mine.target or 0), text(otherWeight + mine.weight + absent) }
end

local reply = {}
for i, key in ipairs(KEYS) do
  for _, part in ipairs(visit(key, 6 + (i - 1) * 10)) do reply[#reply + 1] = part end
end
return reply
`,
};

/** The same replica leaves by its next call, with nothing in flight. */
function leaveWith(args: readonly string[]): string[] {
  return args.map((arg, at) => {
    const figure = at < 5 ? undefined : (at - 5) % 10;
    if (figure === 0) return String(Number(arg) + 1);
    return figure === 5 ? '0' : at === 4 ? 'leave' : arg;
  });
}

/** The terms of a call that its answer is held against. */
type Asked = Pick<CapacityLease, 'toldLimit'>;

/** One grant for each lease asked for, in order. Undefined: not the script's, another replica's, or above the limit. */
export function grantsOf(reply: unknown, replica: string, asked: readonly Asked[]): readonly Grant[] | undefined {
  if (!Array.isArray(reply) || reply.length !== asked.length * replyWidth) return undefined;
  const grants: Grant[] = [];
  for (const [index, { toldLimit }] of asked.entries()) {
    const [name, ...figures] = reply.slice(index * replyWidth, (index + 1) * replyWidth);
    const grant = String(name) === replica ? grantOf(figures) : undefined;
    if (grant === undefined || !(isRepeated(grant) || isWithin(grant, toldLimit))) return undefined;
    grants.push(grant);
  }
  return grants;
}

/** The number of the call that an answer is for; NaN if it is none of the script, or for another replica. */
export function sequenceIn(reply: unknown, replica: string): number {
  const isOurs = Array.isArray(reply) && reply.length % replyWidth === 0 && String(reply[0]) === replica;
  return isOurs ? Number(reply[1]) : Number.NaN;
}

/** The store has seen the call, or a later one, already: the answer says nothing. */
export function isRepeated({ grant }: Grant): boolean {
  return grant === -1;
}

function isWithin({ grant, safe, limit, largestLimit, replicas, held, target }: Grant, toldLimit: number): boolean {
  const isInOrder = 0 <= safe && safe <= grant && grant <= limit && limit <= Math.min(toldLimit, largestLimit);
  return isInOrder && replicas >= 1 && held >= 0 && target >= 0;
}

function grantOf(figures: readonly unknown[]): Grant | undefined {
  const numbers = numbersOf(figures, replyWidth - 1);
  if (numbers === undefined || !numbers.every(Number.isSafeInteger)) return undefined;
  const [sequence = 0, grant = 0, safe = 0, epoch = 0, learning, ...rest] = numbers;
  const [replicas = 0, limit = 0, largestLimit = 0, held = 0, target = 0, poolWeight = 0] = rest;
  const isLearning = learning === 1;
  const others = { replicas, limit, largestLimit, held, target, poolWeight };
  return { sequence, grant, safe, epoch, isLearning, ...others };
}

export function mismatch(where: string, key: string, { limit, largestLimit }: Grant): StoreProblem {
  const cause = `some replicas say ${limit}, others ${largestLimit}`;
  const message = `${where}: ${cause} (key ${key}): ${limit} is in force until all say the same; give pools of different limits different names`;
  return { code: 'limit-mismatch', message, keys: [key], cause };
}
