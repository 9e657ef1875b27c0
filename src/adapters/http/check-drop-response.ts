/**
 * Checks the answers of the host's functions about a drop before they are sent. Platforms throw at a status or a header
 * that they cannot write, and some throw where nobody can catch it.
 */
import { describeValue } from '../../base/faults/flow-config-error.js';
import { FlowConfigError } from '../../index.js';
import type { HttpErrorMapping } from './http-error-mapping.js';

/** @throws FlowConfigError */
export function checkedMapping(mapping: HttpErrorMapping): HttpErrorMapping {
  const { status, droppedReason = '-' } = mapping;
  const isRight = Number.isInteger(status) && status >= 200 && status <= 999 && isHeaderText(droppedReason);
  return sendable(mapping, isRight, 'contract', 'a status from 200 to 999');
}

/** @throws FlowConfigError */
export function checkedBody<B extends { readonly contentType: string; readonly body: string }>(formatted: B): B {
  return sendable(
    formatted,
    isHeaderText(formatted.contentType) && typeof formatted.body === 'string',
    'body',
    'contentType and body',
  );
}

function sendable<A>(answer: A, isRight: boolean, path: string, what: string): A {
  if (isRight) return answer;
  throw new FlowConfigError('flowControl', [
    { path, expected: `${what}, and header values of text`, got: describeValue(answer) },
  ]);
}

function isHeaderText(text: unknown): boolean {
  return typeof text === 'string' && /^[\t\x20-\x7e\x80-\xff]+$/.test(text);
}
