/**
 * The cost that flows have received over all replicas.
 *
 *     KEYS  hash flow → cost, sorted set flow → last heard of, ms; both in one slot
 *     ARGV  how long a flow is remembered, ms; number of flows; then for each flow its name and the cost to add, in thousandths
 *     reply the cost of each flow, in thousandths
 */
import { localTables } from '../store/local-table.js';
import { scriptHead } from '../store/script.js';
import type { StoreScript, Texts } from '../store/store.js';

export const exchangeScript: StoreScript = {
  name: 'exchange',
  local: exchangeInMemory,
  text: `
${scriptHead}
local horizon = tonumber(ARGV[1])
local old = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', text(now - horizon), 'LIMIT', 0, 1000)
if #old > 0 then
  redis.call('ZREM', KEYS[2], unpack(old))
  redis.call('HDEL', KEYS[1], unpack(old))
end
local reply = {}
for i = 3, 2 * tonumber(ARGV[2]) + 1, 2 do
  redis.call('HINCRBY', KEYS[1], ARGV[i], ARGV[i + 1])
  reply[#reply + 1] = redis.call('HGET', KEYS[1], ARGV[i])
  redis.call('ZADD', KEYS[2], text(now), ARGV[i])
end
for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, text(2 * horizon)) end
return reply
`,
};

const tables = localTables<number>();

function exchangeInMemory(memory: object, [key = '']: Texts, [horizonMs, , ...told]: Texts, nowUs: number): string[] {
  const costs = tables(memory);
  const reply: string[] = [];
  for (let at = 0; at < told.length; at += 2) {
    const flow = `${key} ${told[at]}`;
    const cost = (costs.get(flow, nowUs) ?? 0) + Number(told[at + 1]);
    costs.set(flow, cost, nowUs + Number(horizonMs) * 1_000, nowUs);
    reply.push(String(cost));
  }
  return reply;
}
