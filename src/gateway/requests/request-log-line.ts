/** The log line of one request, with all that people ask for afterwards. It is made once the request has ended. */
import { explainDrop } from '../../index.js';
import type { Cut, RequestState } from '../request-state.js';
import type { LogFields, LogLevel } from '../shared/gateway-log.js';

type LogLine = { readonly level: LogLevel; readonly fields: LogFields };

/** `isSent`: the whole answer; `cutBy`: who cut it short. A drop alone is no warning: the `drops` lines have it too. */
export function requestLogLine(state: RequestState, isSent: boolean, cutBy: Cut, showsTenants: boolean): LogLine {
  const { id, req, res, path, model, attempts, drop, failureCode, lease, seatedAtMs } = state;
  const isEvicted = lease?.isEvicted === true;
  const { fairnessId = state.sender?.tenant, priority = state.sender?.priority } = state.classification ?? {};
  const { promptTokens = 0, completionTokens = 0 } = lease?.usage ?? {};
  const endedAtMs = performance.now();
  const fields: LogFields = {
    id,
    method: req.method,
    path,
    tenant: showsTenants ? fairnessId : undefined,
    priority,
    model: model?.slice(0, 100),
    status: res.headersSent ? res.statusCode : undefined,
    reason: drop?.reason ?? (isEvicted ? 'evicted' : undefined),
    wouldDrop: state.wouldDrop?.reason,
    code: failureCode ?? (drop ? explainDrop(drop).code : isEvicted ? 'ERR_FLOW_EVICTED' : undefined),
    endpoint: attempts[attempts.length - 1],
    retries: attempts.length > 1 ? attempts.length - 1 : undefined,
    queuedMs: lease === undefined && drop === undefined ? undefined : Math.round(state.queuedMs),
    ttftMs: state.ttftMs === undefined ? undefined : Math.round(state.ttftMs),
    estimate: state.size?.told,
    promptTokens: promptTokens || undefined,
    completionTokens: completionTokens || undefined,
    heldMs: drop || seatedAtMs === undefined ? undefined : Math.round(endedAtMs - seatedAtMs),
    durationMs: Math.round(endedAtMs - state.startedAtMs),
    ended: isSent ? undefined : (cutBy ?? 'client') === 'client' ? 'client-left' : 'cut-short',
  };
  return { level: failureCode === undefined ? 'info' : 'warn', fields };
}
