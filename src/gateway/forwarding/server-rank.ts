/** A request's rank inside its server, a field of the body. What a client says of it counts only if it is trusted. */
import { fieldsOf, parseJson } from '../../base/stream/content-pieces.js';
import { serverRank } from '../../upstream/index.js';
import type { Fields } from '../bodies/with-fields.js';
import type { RequestState } from '../request-state.js';
import type { UpstreamConfig } from '../settings/gateway-config.js';

/** They win over the body. Source: NVIDIA Dynamo, priority scheduling. */
export const rankHeaders: readonly string[] = ['x-dynamo-request-priority', 'x-dynamo-request-strict-priority'];

/** The fields of the body for this server. */
export function rankFields(state: RequestState, { priority: dialect }: UpstreamConfig): Fields {
  const { body, lease } = state;
  if (dialect === undefined || body === undefined || lease === undefined) return {};
  if (keepsRank(state, typeof dialect === 'object' ? dialect.field : 'priority')) return {};
  if (dialect === 'none') return { priority: undefined };
  if (typeof dialect === 'object') {
    const { field, ranks } = dialect;
    return { [field]: String((ranks.find((step) => step.priority <= lease.priority) ?? ranks.at(-1)!).rank) };
  }
  const rank = serverRank(dialect, lease.priority);
  return dialect === 'dynamo' ? { nvext: withHint(state, rank) } : { priority: String(rank) };
}

/** A trusted client has said it itself. */
function keepsRank({ sender, body, req }: RequestState, field: string): boolean {
  const isSaid =
    body?.spans.has(field) === true ||
    body?.hints.priority !== undefined ||
    rankHeaders.some((name) => name in req.headers);
  return isSaid && sender?.trusted === true;
}

/** What else the client says in `nvext` stays. */
function withHint({ bytes, body }: RequestState, priority: number): string {
  const { start, end } = body?.spans.get('nvext') ?? { start: 0, end: 0 };
  const given = fieldsOf(parseJson(bytes?.toString('utf8', start, end) ?? ''));
  const { strict_priority: _, ...hints } = fieldsOf(given?.agent_hints) ?? {};
  return JSON.stringify({ ...given, agent_hints: { ...hints, priority } });
}
