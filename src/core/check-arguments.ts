/** Tells wrong calls from requests: what cannot be right is a `FlowConfigError`, never an outcome. */
import { type ConfigIssue, describeValue, FlowConfigError } from '../base/faults/flow-config-error.js';
import type { FlowKey, FlowRequest } from './flow-request.js';

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function isSpan(value: unknown): boolean {
  return typeof value === 'number' && value >= 0;
}

/** The error for a wrong call of `enqueue`; undefined for a right one, which allocates nothing. */
export function argumentError(method: string, request: FlowRequest, key: FlowKey): FlowConfigError | undefined {
  return isObject(request) && isObject(key) && isRightRequest(request) && isRightKey(key) ? undefined : describeWrong(method, request, key);
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null;
}

function isRightRequest({ byteSize, signal, ttlMs, tokens, sloTtftMs, receivedAtMs }: FlowRequest): boolean {
  return (
    isCount(byteSize) &&
    (signal === undefined || isSignal(signal)) &&
    (ttlMs === undefined || isSpan(ttlMs)) &&
    (tokens === undefined || isCount(tokens)) &&
    (sloTtftMs === undefined || isSpan(sloTtftMs)) &&
    (receivedAtMs === undefined || Number.isFinite(receivedAtMs))
  );
}

function isRightKey({ fairnessId, priority }: FlowKey): boolean {
  return typeof fairnessId === 'string' && fairnessId !== '' && (priority === undefined || Number.isSafeInteger(priority));
}

function describeWrong(method: string, request: FlowRequest, key: FlowKey): FlowConfigError {
  if (!isObject(request)) return failure(method, 'request', 'an object with a byteSize', request);
  if (!isObject(key)) return failure(method, 'key', 'an object with a fairnessId', key);
  const { byteSize, signal, ttlMs, tokens, sloTtftMs, receivedAtMs } = request;
  const { fairnessId, priority } = key;
  const issues: ConfigIssue[] = [];
  const check = (isRight: boolean, path: string, expected: string, value: unknown): void => {
    if (!isRight) issues.push({ path, expected, got: describeValue(value) });
  };
  check(isCount(byteSize), 'request.byteSize', 'an integer from 0 up', byteSize);
  check(signal === undefined || isSignal(signal), 'request.signal', 'an AbortSignal', signal);
  check(ttlMs === undefined || isSpan(ttlMs), 'request.ttlMs', 'milliseconds from 0 up', ttlMs);
  check(tokens === undefined || isCount(tokens), 'request.tokens', 'an integer from 0 up', tokens);
  check(sloTtftMs === undefined || isSpan(sloTtftMs), 'request.sloTtftMs', 'milliseconds from 0 up', sloTtftMs);
  check(receivedAtMs === undefined || Number.isFinite(receivedAtMs), 'request.receivedAtMs', 'an instant in milliseconds', receivedAtMs);
  check(typeof fairnessId === 'string' && fairnessId !== '', 'key.fairnessId', 'a string that is not empty', fairnessId);
  check(priority === undefined || Number.isSafeInteger(priority), 'key.priority', 'a safe integer', priority);
  return new FlowConfigError(method, issues);
}

/** The platform's own, which is quick to tell (bench: cancel), or one that does the same. */
function isSignal(value: unknown): boolean {
  return value instanceof AbortSignal || isLikeSignal(value as Partial<AbortSignal> | null);
}

function isLikeSignal(value: Partial<AbortSignal> | null): boolean {
  return (
    typeof value?.aborted === 'boolean' && typeof value.addEventListener === 'function' && typeof value.removeEventListener === 'function'
  );
}

function failure(method: string, path: string, expected: string, value: unknown): FlowConfigError {
  return new FlowConfigError(method, [{ path, expected, got: describeValue(value) }]);
}
