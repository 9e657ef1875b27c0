-- Keeps what lease-step.ts reads and writes: each pool in a hash, each record packed. See lease-script.ts.
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
  local sums = { limits = {} }
  for _, name in ipairs({ --[[sumFields]] }) do sums[name] = 0 end
  return sums
end
function memory.newReplica(id)
  local r = { id = id }
  for _, name in ipairs({ --[[replicaFields]] }) do r[name] = 0 end
  return r
end
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
--[[step]]
local caller = { clock = now, now = now, self = ARGV[1], id = ARGV[2], isNamed = tonumber(ARGV[3]), isLeaving = ARGV[8] == 'leave' }
for i, name in ipairs({ --[[spanFields]] }) do caller[name] = tonumber(ARGV[3 + i]) end
local reply, at = {}, 9
for _, key in ipairs(KEYS) do
  local told = {}
  for _, name in ipairs({ --[[toldFields]] }) do told[name], at = tonumber(ARGV[at]), at + 1 end
  reply[#reply + 1] = caller.id
  for _, figure in ipairs(visit(memory, key, caller, told)) do reply[#reply + 1] = text(figure) end
end
return reply
