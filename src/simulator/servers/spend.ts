/** What simulated servers cost, and what was spent by group. Money has no unit: it is that of the prices. */
import * as s from '../../base/schema/schema.js';
import type { Schema } from '../../index.js';

/** The price of a server: for a million tokens, and for each hour of the run, used or not. @default 0 each */
export interface ServerPrice {
  readonly input?: number | undefined;
  readonly output?: number | undefined;
  readonly perHour?: number | undefined;
}

const amount = s.optional(s.atLeastZero(), 0);
export const serverPrice: Schema<ServerPrice> = s.object({ input: amount, output: amount, perHour: amount });

interface Billed {
  readonly servers: readonly {
    readonly id: string;
    readonly group?: string | undefined;
    readonly cost?: number | undefined;
  }[];
}

/** By group, or by server where it is in none, and of all under undefined; empty where no server has a price. */
export function spendByGroup({ servers }: Billed): Map<string | undefined, number> {
  const spend = new Map<string | undefined, number>();
  for (const { id, group = id, cost } of servers)
    if (cost !== undefined) for (const of of [group, undefined]) spend.set(of, (spend.get(of) ?? 0) + cost);
  return spend;
}

/** `Spent: 1.20 own, 1.57 in all, 0.37 paid.`; empty where nothing has a price. */
export function spendText(result: Billed): string {
  const spent = Array.from(spendByGroup(result), ([group = 'in all', cost]) => `${cost.toFixed(2)} ${group}`);
  return spent.length === 0 ? '' : `Spent: ${spent.join(', ')}.`;
}
