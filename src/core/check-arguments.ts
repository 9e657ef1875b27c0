/** Says what is wrong with a call of `enqueue` that cannot be right: a `FlowConfigError`, never an outcome. */
import { expectedWord } from '../base/faults/did-you-mean.js';
import { type ConfigIssue, configError, describeValue, FlowConfigError } from '../base/faults/flow-config-error.js';
import type { FlowKey, FlowRequest } from './flow-request.js';

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

export function isSpan(value: unknown): value is number {
  return typeof value === 'number' && value >= 0;
}

/** Describes a call that Intake did not take. */
export function argumentError(method: string, request: FlowRequest, key: FlowKey): FlowConfigError {
  return wrongCall(method, request, key) ?? failure(method, 'request', 'properties that stay as they are', request);
}

/** Undefined for a call that can be right. For those whom a description does not cost too much. */
export function wrongCall(method: string, request: FlowRequest, key: FlowKey): FlowConfigError | undefined {
  try {
    return describeWrong(method, request, key);
  } catch (error) {
    return failure(method, 'request', 'properties that can be read', error);
  }
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null;
}

function describeWrong(method: string, request: FlowRequest, key: FlowKey): FlowConfigError | undefined {
  if (!isObject(request)) return failure(method, 'request', 'an object with a byteSize', request);
  if (!isObject(key)) return failure(method, 'key', 'an object with a fairnessId', key);
  const { byteSize, signal, ttlMs, tokens, sloTtftMs, receivedAtMs, maxWaitMs } = request;
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
  const isInstant = receivedAtMs === undefined || Number.isFinite(receivedAtMs);
  check(isInstant, 'request.receivedAtMs', 'an instant in milliseconds', receivedAtMs);
  check(maxWaitMs === undefined || isSpan(maxWaitMs), 'request.maxWaitMs', 'milliseconds from 0 up', maxWaitMs);
  const isName = typeof fairnessId === 'string' && fairnessId !== '';
  check(isName, 'key.fairnessId', 'a string that is not empty', fairnessId);
  check(priority === undefined || Number.isSafeInteger(priority), 'key.priority', 'a safe integer', priority);
  return issues.length === 0 ? undefined : new FlowConfigError(method, issues);
}

/** @throws FlowConfigError for arguments of `run` that cannot be right */
export function checkRun(work: unknown, { onEvicted }: { readonly onEvicted?: unknown }): void {
  if (typeof work !== 'function') throw failure('run', 'work', 'a function that takes the lease', work);
  if (onEvicted === undefined || onEvicted === 'drop' || onEvicted === 'requeue') return;
  throw failure('run', 'options.onEvicted', expectedWord(onEvicted, ['drop', 'requeue']), onEvicted);
}

/** A signal of the platform, which is quick to recognize (bench: cancel), or an object that does the same. */
export function isSignal(value: unknown): boolean {
  return value instanceof AbortSignal || isLikeSignal(value as Partial<AbortSignal> | null);
}

function isLikeSignal(value: Partial<AbortSignal> | null): boolean {
  return (
    typeof value?.aborted === 'boolean' &&
    typeof value.addEventListener === 'function' &&
    typeof value.removeEventListener === 'function'
  );
}

function failure(method: string, path: string, expected: string, value: unknown): FlowConfigError {
  return configError(method, path, expected, describeValue(value));
}
