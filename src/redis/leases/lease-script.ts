/**
 * The protocol of capacity leases, the store's side: one hash for each limit, one field for each replica's name.
 *
 *     KEYS   the hashes, all in one slot
 *     ARGV   name, incarnation, named (0 or 1), refresh, lease, drain, forget (ms), 'call' or 'leave';
 *            then for each key: sequence, acknowledged, limit, weight, cap, in flight, wants, safe share, and of the last answer that
 *            this replica got the epoch, the pool's weight and the birth (0 before the first); and the most that it uses
 *     reply  for each key: incarnation, sequence, grant, safe share, epoch, learning (0 or 1), replicas, limit, largest limit, held,
 *            target, the pool's weight, birth, state (0, 1: another has the name too, 2: another has it), and what others lack
 *
 * Invariant: no call makes the sum of `held` rise above the limit. So a replica that uses its grant, or the cap that it
 * reported, keeps the pool below its limit. `held` covers both, because the reply that carries the grant may be lost.
 *
 * A call costs the same for any number of replicas: it corrects sums by its own figures. The fair part follows from two
 * of them: what those want who want less than it, and the weight of the rest; who belongs to which is known from their
 * last calls. Source: A. Charny, D. Clark, R. Jain, "Congestion control with explicit rate indication" (1995). What
 * nobody lacks goes to whoever asks. A replica gives back what it has beyond its part when another lacks some of its
 * own. Where fewer seats than replicas are left, they take turns of two leases; who has waited longest is next.
 *
 * A new incarnation of a name gets the name's part, less what the last one may still run. A replica without a name
 * takes the place of one without a name that fell silent before it came.
 *
 * A store that has lost what it knew begins an epoch, and learns it from the replicas' calls: nobody's share grows
 * for one lease, or for one refresh where nobody remembers the pool. The first to call tell how much weight it had.
 * Weight that has not called again by then is absent, and may still run requests. No share grows until its drain is
 * over. After that its fair part is kept for it, unless as many have joined.
 */
import { scriptHead } from '../store/script.js';
import type { StoreScript } from '../store/store.js';
import { leaseInMemory, replicaFields, spanFields, sumFields, toldFields } from './lease-in-memory.js';

const listOf = (names: readonly string[]): string => names.map((name) => `'${name}'`).join(', ');

export const leaseScript: StoreScript = {
  name: 'leases',
  farewell: leaveWith,
  local: leaseInMemory,
  text: `
${scriptHead}
local clock = now
local self, id, isNamed, isLeaving = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[8] == 'leave'
local ${spanFields.join(', ')} = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local sumFields, replicaFields = { ${listOf(sumFields)} }, { ${listOf(replicaFields)} }

local function read(line)
  if not line then return nil end
  local isPacked, record = pcall(cmsgpack.unpack, line)
  finite(isPacked and type(record) == 'table' and record.held)
  return record
end

local function zeros(fields)
  local record = {}
  for _, name in ipairs(fields) do record[name] = 0 end
  return record
end

-- Adds what a live replica told to the sums, or takes it off (sign -1). What it holds is counted elsewhere.
local function count(sums, r, sign)
  sums.uses, sums.short, sums.live = sums.uses + sign * r.uses, sums.short + sign * r.short, sums.live + sign
  sums.weight = sums.weight + sign * r.weight
  if r.isHungry == 1 then sums.hungry = sums.hungry + sign * r.weight else sums.content = sums.content + sign * r.wants end
  if r.ticket > 0 then sums.waiting = sums.waiting + sign end
  local saying = (sums.limits[r.limit] or 0) + sign
  sums.limits[r.limit] = saying > 0 and saying or nil
end

-- What it holds, and what an earlier incarnation of its name may still run, which a live replica is said to use.
local function hold(sums, r, held, ghost)
  local step = held + ghost - r.held - r.ghost
  sums.held = sums.held + step
  if r.stage > 0 then sums.silent = sums.silent + step else sums.uses = sums.uses + ghost - r.ghost end
  r.held, r.ghost = held, ghost
end

local function fallSilent(sums, r)
  count(sums, r, -1)
  sums.silent, sums.uses = sums.silent + r.held + r.ghost, sums.uses - r.ghost
  r.stage, r.ticket = 1, 0
end

local function comeBack(sums, r)
  if r.stage == 0 then return end
  sums.silent, sums.uses = sums.silent - r.held - r.ghost, sums.uses + r.ghost
  r.stage = 0
  count(sums, r, 1)
end

-- A replica is live (0), then silent with all that it holds (1), then with its safe share (2). False: it is forgotten.
local function pass(sums, r)
  if r.ghost > 0 and now > r.ghostEnd then hold(sums, r, r.held, 0) end
  if r.stage == 0 and now > r.leaseEnd then fallSilent(sums, r) end
  if r.stage > 0 and now > r.drainEnd then
    r.stage = 2
    hold(sums, r, math.min(r.held, r.safe), r.ghost)
    local first = math.max(r.joins, sums.matched)
    if r.isNamed == 0 and sums.joins > first then sums.matched, r.forgetEnd = first + 1, 0 end
  end
  if r.stage < 2 or now <= r.forgetEnd then return true end
  hold(sums, r, 0, 0)
  sums.known = sums.known - r.weight
  return false
end

local function endOf(r)
  local stageEnd = r.stage == 0 and r.leaseEnd or r.stage == 1 and r.drainEnd or r.forgetEnd
  if r.stage == 2 and r.isNamed == 0 then stageEnd = math.min(stageEnd, now + lease) end
  return r.ghost > 0 and math.min(stageEnd, r.ghostEnd) or stageEnd
end

-- Looks at all replicas: seldom, because who is alive has called again, and its end has moved on.
local function sweep(key, sums)
  local all, due = redis.call('HGETALL', key), {}
  sums.nextEnd = now + lease
  for i = 1, #all, 2 do
    if all[i] ~= '#' then
      local r = read(all[i + 1])
      local ending = endOf(r)
      if now > ending or (r.stage == 2 and r.isNamed == 0) then due[#due + 1] = { name = all[i], ending = ending, r = r }
      else sums.nextEnd = math.min(sums.nextEnd, ending) end
    end
  end
  table.sort(due, function(a, b) return a.ending < b.ending or (a.ending == b.ending and a.name < b.name) end)
  for _, each in ipairs(due) do
    if pass(sums, each.r) then
      redis.call('HSET', key, each.name, cmsgpack.pack(each.r))
      sums.nextEnd = math.min(sums.nextEnd, endOf(each.r))
    else
      redis.call('HDEL', key, each.name)
    end
  end
end

local hasSwept = false

local function visit(key, at)
  local told = {}
  for i = 0, ${toldFields.length - 1} do told[i + 1] = tonumber(ARGV[at + i]) end
  local ${toldFields.join(', ')} = unpack(told)
  local lines = redis.call('HMGET', key, '#', self)
  local sums, mine = read(lines[1]), read(lines[2])
  -- Where the clock was set back, time goes on from the last call.
  now = math.max(clock + (sums and sums.ahead or 0), sums and sums.last or 0)
  if sums and now > sums.nextEnd and not hasSwept then
    -- Of one limit in each call, so that no call takes long.
    hasSwept = true
    sweep(key, sums)
    redis.call('HSET', key, '#', cmsgpack.pack(sums))
    mine = read(redis.call('HGET', key, self))
  end
  local isMine = mine and mine.id == id
  local began = sums and sums.began or 0
  -- A delayed call, or its duplicate: the reply is of no use, and changes nothing.
  if isMine and sequence <= mine.sequence then return { mine.sequence, -1, 0, began, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 } end
  if mine and not isMine and not isLeaving and rememberedBirth > 0 and rememberedBirth < mine.born then
    mine.hasRival = 1
    redis.call('HSET', key, self, cmsgpack.pack(mine))
    return { sequence, -1, 0, began, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0 }
  end
  -- Who has left with nothing, or whose name another has, leaves nothing behind.
  if isLeaving and not isMine and (mine or inFlight == 0) then return { sequence, 0, 0, began, 0, 1, limit, limit, 0, 0, 0, 0, 0, 0 } end
  -- A store that knows less than it acknowledged has lost writes, of this replica and perhaps of others.
  local hasLost = not isLeaving and (isMine and mine.sequence or 0) < acknowledged
  if not sums or (hasLost and now >= sums.learnsUntil) then
    local all = redis.call('HGETALL', key)
    for i = 1, #all, 2 do redis.call('HDEL', key, all[i]) end
    sums, mine = zeros(sumFields), nil
    sums.limits = {}
    sums.began, sums.learnsUntil, sums.nextEnd = math.max(now, began + 1), now + refresh, now + lease
    sums.drainEnd, sums.forgetEnd = now + lease + drain, now + lease + drain + forget
  end
  if rememberedEpoch > 0 and rememberedEpoch ~= sums.began then
    sums.expected = math.max(sums.expected, rememberedWeight)
    sums.learnsUntil = math.max(sums.learnsUntil, sums.began + lease)
    if not mine then sums.called = sums.called + weight end
  elseif not mine and not isLeaving then
    sums.joined = sums.joined + weight
  end
  local absent = now <= sums.forgetEnd and math.max(0, sums.expected - sums.called) or 0
  local isLearning = now < sums.learnsUntil or (absent > 0 and now <= sums.drainEnd)
  absent = isLearning and absent or math.max(0, absent - sums.joined)
  local wasOver = mine and mine.stage == 2
  if mine then
    comeBack(sums, mine)
    count(sums, mine, -1)
  else
    mine = zeros(replicaFields)
    mine.id, mine.born, mine.isNamed = id, now, isNamed
    if not isLeaving then sums.joins = sums.joins + 1 - isNamed end
  end
  if mine.id ~= id then
    if not wasOver then mine.ghostEnd = math.max(mine.ghostEnd, now + drain, mine.leaseEnd) end
    hold(sums, mine, 0, mine.ghost + (wasOver and 0 or mine.held))
    mine.id, mine.born, mine.ticket, mine.since, mine.hasRival = id, math.max(now, mine.born + 1), 0, 0, 0
  end
  sums.known, mine.weight, mine.limit = sums.known + weight - mine.weight, weight, limit
  mine.sequence, mine.joins, mine.leaseEnd = sequence, sums.joins, now + lease
  mine.drainEnd, mine.forgetEnd = now + lease + drain, now + lease + drain + forget
  hold(sums, mine, 0, mine.ghost)

  local smallest, largest = limit, limit
  for said in pairs(sums.limits) do smallest, largest = math.min(smallest, said), math.max(largest, said) end
  local kept = absent > 0 and not isLearning and math.ceil(smallest * absent / sums.expected) or 0
  local grant, safe, target = 0, 0, 0
  if isLeaving then
    -- It is known for a drain, so that a late call of it is not taken for one that the store has lost.
    local forgetEnd = math.max(mine.ghostEnd, now + drain)
    -- What an earlier one may still run is kept until it is over, and so is what is in flight.
    if inFlight > 0 then mine.ghostEnd = forgetEnd end
    hold(sums, mine, 0, mine.ghost + inFlight)
    mine.stage, mine.isNamed, mine.safe, mine.forgetEnd = 2, 1, 0, forgetEnd
    sums.silent, sums.uses = sums.silent + mine.ghost, sums.uses - mine.ghost
    if mine.ghost == 0 then sums.known, mine.weight = sums.known - mine.weight, 0 end
  else
    local free, room = smallest - sums.held - kept, smallest - sums.silent - kept
    local left = room - sums.uses - sums.short
    local wanted = math.min(wants, smallest, most)
    -- A seat for each of the idle, where these are a tenth of the limit at most.
    if wanted == 0 and 10 * sums.live <= smallest then wanted = 1 end
    local fair = math.max(0, math.floor((room - sums.content) * weight / (sums.hungry + weight)))
    local part = math.max(0, math.min(wanted, fair) - mine.ghost)
    if part == 0 and wanted > 0 then
      local place = sums.waiting + 1 + (mine.ticket > 0 and mine.ticket - sums.ticket or 0)
      if place <= free or (mine.since > 0 and now < mine.since + 2 * lease) then part = 1 end
    end
    target = math.max(part, math.min(wanted, left))
    if wanted <= fair and sums.hungry == 0 and sums.short == 0 then
      local spare = math.floor((room - sums.content - wanted) * weight / (sums.weight + weight))
      -- What is left over goes to whoever comes when the others have theirs.
      if sums.uses >= sums.content + spare * sums.live then spare = spare + 1 end
      target = math.max(target, math.min(wanted + spare, smallest, most))
    end
    grant = math.max(0, math.min(isLearning and cap or target, free))
    safe = math.min(grant, math.floor(smallest * weight / (sums.weight + weight)))
    mine.wants, mine.isHungry, mine.safe, mine.uses = wanted, wanted > fair and 1 or 0, math.max(safe, safeInUse), math.max(grant, inFlight)
    mine.short = math.max(0, math.min(wanted, math.max(part, 1)) - mine.uses)
    if grant > 0 or wanted <= inFlight then
      mine.ticket = 0
    elseif mine.ticket == 0 then
      sums.ticket = sums.ticket + 1
      mine.ticket = sums.ticket
    end
    mine.since = grant > 0 and (mine.since > 0 and mine.since or now) or 0
    hold(sums, mine, math.max(grant, cap, inFlight), mine.ghost)
  end
  local lack = sums.short
  if mine.stage == 0 then count(sums, mine, 1) end
  sums.nextEnd, sums.last, sums.ahead = math.min(sums.nextEnd, endOf(mine)), now, now - clock
  local isLater = mine.forgetEnd > sums.lastEnd
  if isLater then sums.lastEnd = mine.forgetEnd + lease end
  redis.call('HSET', key, '#', cmsgpack.pack(sums), self, cmsgpack.pack(mine))
  if isLater then redis.call('PEXPIREAT', key, text(sums.lastEnd - sums.ahead)) end
  return { sequence, grant, safe, sums.began, isLearning and 1 or 0, math.max(1, sums.live), smallest, largest, sums.held + kept, target, sums.known + absent,
    mine.born, mine.hasRival, lack }
end

local reply = {}
for i, key in ipairs(KEYS) do
  reply[#reply + 1] = id
  for _, figure in ipairs(visit(key, 9 + (i - 1) * ${toldFields.length})) do reply[#reply + 1] = text(figure) end
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
