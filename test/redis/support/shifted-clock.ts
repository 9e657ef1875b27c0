/**
 * Jumps of a store's clock. The server's own clock stays as it is: a changed script adds an offset to `TIME`, and a jump
 * moves the ends of keys, as the server's clock would.
 */
import type { Redis } from 'ioredis';
import { edited } from './control.js';

const offsetKey = 'clock-offset';

/** The script, on the shifted clock of its store. */
export function withShiftedClock(text: string): string {
  const changed = edited(
    text,
    "local time = redis.call('TIME')",
    `local time, offset = redis.call('TIME'), tonumber(redis.call('GET', '${offsetKey}') or 0)\ntime[1] = time[1] + offset / 1000`,
  ).replace(/('PEXPIREAT',key,text\()(.*?)(\)\))/g, '$1($2) - offset$3');
  if (!changed.includes('- offset))')) throw new Error('the script reads the time otherwise');
  return changed;
}

const jump = `
for _, key in ipairs(redis.call('KEYS', 'headgate:*')) do
  local left = redis.call('PTTL', key)
  if left >= 0 and left <= tonumber(ARGV[1]) then redis.call('DEL', key) end
  if left > tonumber(ARGV[1]) then redis.call('PEXPIRE', key, left - ARGV[1]) end
end
redis.call('INCRBY', '${offsetKey}', ARGV[1])
`;

/** Whole seconds, ahead or back. */
export async function jumpClock(redis: Redis, seconds: number): Promise<void> {
  await redis.eval(jump, 0, String(1_000 * seconds));
}
