/**
 * Weighted permits with an expiry.
 *
 *     KEYS  sorted set permit → expiry, hash permit → seats, counter of seats; all in one slot
 *     ARGV  'acquire', 'renew' or 'release'; permit; seats; limit; time to live, ms
 *     reply '1' when the permit is held now, else '0'; seats in use
 *
 * Invariant: the counter is the sum of the hash. A call that is repeated after a lost answer changes nothing.
 */
import { type Script, script, scriptHead } from '../engine/script.js';

const semaphoreText: string = `
${scriptHead}
local mode, permit, seats, limit, ttl = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])

local function drop(id)
  local held = redis.call('HGET', KEYS[2], id)
  redis.call('ZREM', KEYS[1], id)
  if held then
    redis.call('HDEL', KEYS[2], id)
    redis.call('DECRBY', KEYS[3], held)
  end
end

for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', text(now), 'LIMIT', 0, 100)) do drop(id) end
local isHeld = redis.call('HEXISTS', KEYS[2], permit) == 1
if mode == 'release' then
  drop(permit)
  isHeld = false
elseif mode == 'renew' then
  if isHeld then redis.call('ZADD', KEYS[1], 'XX', text(now + ttl), permit) end
elseif not isHeld then
  local used = finite(redis.call('GET', KEYS[3]) or 0)
  if used + seats <= limit or used == 0 then
    redis.call('HSET', KEYS[2], permit, text(seats))
    redis.call('INCRBY', KEYS[3], text(seats))
    redis.call('ZADD', KEYS[1], text(now + ttl), permit)
    isHeld = true
  end
end
local used = redis.call('GET', KEYS[3]) or '0'
-- Nothing of an idle semaphore stays behind, and a permit that nobody gives back cannot outlive it.
if used == '0' then
  redis.call('DEL', KEYS[1], KEYS[2], KEYS[3])
else
  for _, key in ipairs(KEYS) do
    if redis.call('PTTL', key) < 2 * ttl then redis.call('PEXPIRE', key, text(4 * ttl)) end
  end
end
return { isHeld and '1' or '0', used }
`;

let made: Script | undefined;

export function semaphoreScript(): Script {
  made ??= script('semaphore', semaphoreText);
  return made;
}
