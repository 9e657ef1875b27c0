/**
 * The log line of one request: everything that somebody asks for afterwards, worked out once, when the request has
 * ended.
 */
import { explainDrop } from '../index.js';
import type { Call } from './call.js';
import type { LogFields, LogLevel } from './gateway-log.js';

export interface RequestLine {
  readonly level: LogLevel;
  readonly fields: LogFields;
}

/**
 * `isSent`: the client got the whole answer. Drops are told by `drops` lines as well, so that one alone is no warning.
 */
export function requestLine(call: Call, isSent: boolean, showsTenants: boolean): RequestLine {
  const { id, req, res, path, model, attempts, drop, failure } = call;
  const lease = req.flow?.lease;
  const { fairnessId = call.sender?.tenant, priority = call.sender?.priority } = call.classification ?? {};
  const { promptTokens = 0, completionTokens = 0 } = lease?.usage ?? {};
  const fields: LogFields = {
    id,
    method: req.method,
    path,
    tenant: showsTenants ? fairnessId : undefined,
    priority,
    model: model?.slice(0, 100),
    status: res.headersSent ? res.statusCode : undefined,
    reason: drop?.reason ?? (lease?.isEvicted === true ? 'evicted' : undefined),
    wouldDrop: call.wouldDrop?.reason,
    code: failure ?? codeOf(call),
    endpoint: attempts[attempts.length - 1],
    retries: attempts.length > 1 ? attempts.length - 1 : undefined,
    queuedMs: lease === undefined && drop === undefined ? undefined : Math.round(call.queuedMs),
    ttftMs: call.ttftMs === undefined ? undefined : Math.round(call.ttftMs),
    promptTokens: promptTokens || undefined,
    completionTokens: completionTokens || undefined,
    durationMs: Math.round(performance.now() - call.startedAtMs),
    ended: isSent ? undefined : res.headersSent ? 'cut-short' : 'client-left',
  };
  return { level: failure === undefined ? 'info' : 'warn', fields };
}

function codeOf({ drop, req }: Call): string | undefined {
  if (drop !== undefined) return explainDrop(drop).code;
  return req.flow?.lease.isEvicted === true ? 'ERR_FLOW_EVICTED' : undefined;
}
