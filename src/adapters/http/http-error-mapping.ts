/** How one drop is answered. */
import { describeValue } from '../../base/faults/flow-config-error.js';
import type { DroppedReason } from '../../base/headers/header-names.js';
import { FlowConfigError } from '../../index.js';
import type { DropExplanation } from '../../types/index.js';

export interface HttpErrorMapping {
  readonly status: number;
  /** Value of the dropped-reason header; without it the header is not sent. */
  readonly droppedReason?: string | undefined;
}

/** The value of the dropped-reason header, in every contract. */
export const droppedReasons: Readonly<Partial<Record<DropExplanation['cause'], DroppedReason>>> = {
  saturated: 'rejected-saturated',
  overloaded: 'rejected-saturated',
  'no-endpoints': 'rejected-no-endpoints',
  'ttl-expired': 'rejected-ttl-expired',
  cancelled: 'rejected-context-cancelled',
  'shutting-down': 'rejected-shutting-down',
  evicted: 'evicted-priority',
  infeasible: 'rejected-infeasible',
};

/**
 * Checks the answer of a host's function before it is sent. Platforms throw at a status or a header that they cannot
 * write, and some throw where nobody can catch it.
 * @throws FlowConfigError
 */
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
