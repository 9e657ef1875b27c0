/**
 * The cost that flows have received over all replicas.
 *
 *     KEYS  hash flow → cost, sorted set flow → last heard of, ms; both in one slot
 *     ARGV  how long a flow is remembered, ms; number of flows; then for each flow its name and the cost to add, in thousandths
 *     reply the cost of each flow, in thousandths
 */
import { builtScripts } from '../store/built-scripts.js';
import { localTables } from '../store/local-table.js';
import type { StoreScript, Texts } from '../store/store.js';

export const exchangeScript: StoreScript = {
  name: 'exchange',
  local: exchangeInMemory,
  text: builtScripts.exchange,
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
