/** How servers write the rank of a request: which way round, and in which range. */

/**
 * - `vllm`: the field `priority`, lower first; needs `--scheduling-policy priority`.
 * - `sglang`: the field `priority`, higher first; needs `--enable-priority-scheduling`.
 * - `dynamo`: `nvext.agent_hints.priority`, higher first.
 * - `none`: the server knows no rank.
 */
export type RankDialect = 'vllm' | 'sglang' | 'dynamo' | 'none';

/** Servers keep it in 32 bits. */
const most = 2 ** 31 - 1;

/** The number of 32 bits that such a server takes for this priority (`lease.priority`); 0 for `none`. */
export function serverRank(dialect: RankDialect, priority: number): number {
  const rank = Math.min(Math.max(Math.trunc(priority), -most), most);
  if (dialect === 'none' || rank === 0) return 0;
  return dialect === 'vllm' ? -rank : rank;
}
