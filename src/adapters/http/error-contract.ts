/** Which status and which dropped reason a drop is answered with. */
import { describeValue } from '../../base/faults/flow-config-error.js';
import type { DroppedReason } from '../../base/headers/header-names.js';
import { type Drop, explainDrop, FlowConfigError } from '../../index.js';
import type { DropExplanation } from '../../types/index.js';

export interface HttpErrorMapping {
  readonly status: number;
  /** Value of the dropped-reason header; without it the header is not sent. */
  readonly droppedReason?: string | undefined;
}

/**
 * - `gateway-api`: the table of the Gateway API inference extension: an expired TTL is 503, shutting down is 500.
 * - `llm-d`: what llm-d-router answers today: an expired TTL is 429 (503 without endpoints), shutting down is 503.
 * - `dynamo`: Dynamo's 503 for overload, with its flat body; later releases: `dynamoContract(529)` and `dynamoBody`.
 * - a function: your own.
 */
export type ErrorContract = 'gateway-api' | 'llm-d' | 'dynamo' | ((drop: Drop) => HttpErrorMapping);

type ByCause<T> = Readonly<Partial<Record<DropExplanation['cause'], T>>>;

/** The value of the dropped-reason header, in every contract. */
const droppedReasons: ByCause<DroppedReason> = {
  saturated: 'rejected-saturated',
  overloaded: 'rejected-saturated',
  budget: 'rejected-saturated',
  'no-endpoints': 'rejected-no-endpoints',
  'ttl-expired': 'rejected-ttl-expired',
  cancelled: 'rejected-context-cancelled',
  'shutting-down': 'rejected-shutting-down',
  evicted: 'evicted-priority',
  infeasible: 'rejected-infeasible',
};

/** Where llm-d's statuses are not those of the Gateway API. */
const llmD: ByCause<number> = { overloaded: 429, 'ttl-expired': 429, 'shutting-down': 503 };

/** The drops that Dynamo's front end calls overload. */
export const overloadCodes: readonly string[] = [
  'ERR_FLOW_SATURATED',
  'ERR_FLOW_OVERLOADED',
  'ERR_FLOW_BUDGET',
  'ERR_FLOW_TTL_EXPIRED',
  'ERR_FLOW_INFEASIBLE',
];

/** The status that Dynamo's later releases use for overload. */
export const laterOverloadStatus = 529;

/**
 * An error contract for clients of Dynamo, for use with `body: dynamoBody`. Drops because of load, an expired TTL among
 * them, get `overloadStatus`; faults 500, void requests 403, the rest 503. Source: Dynamo, request rejection.
 * @example
 * const overloadStatus = dynamoOverloadStatus(process.env.DYN_HTTP_OVERLOAD_STATUS_CODE);
 * toHttpResponse(drop, { contract: dynamoContract(overloadStatus), body: dynamoBody });
 */
export function dynamoContract(overloadStatus = 503): (drop: Drop) => HttpErrorMapping {
  return (drop) => {
    const { cause, code, status } = explainDrop(drop);
    const other = cause === 'internal' || cause === 'revoked' ? status : 503;
    return { status: overloadCodes.includes(code) ? overloadStatus : other, droppedReason: droppedReasons[cause] };
  };
}

const dynamo = dynamoContract();

/** The status of Dynamo's `DYN_HTTP_OVERLOAD_STATUS_CODE`: an integer from 200 to 999; 529 for anything else. */
export function dynamoOverloadStatus(text: string | undefined): number {
  const status = /^\d{3}$/.test(text ?? '') ? Number(text) : 0;
  return status >= 200 ? status : laterOverloadStatus;
}

/** `hasEndpoints` tells whether the pool has any now; only the `llm-d` contract asks, for an expired TTL. */
export function mapDrop(
  drop: Drop,
  { cause, status }: DropExplanation,
  contract: ErrorContract,
  hasEndpoints: (() => boolean) | undefined,
): HttpErrorMapping {
  if (typeof contract === 'function') return checkedMapping(contract(drop));
  if (contract === 'dynamo') return dynamo(drop);
  const droppedReason = droppedReasons[cause];
  // The table files shutting down under internal errors, and has no reason for it.
  if (contract === 'gateway-api')
    return { status, droppedReason: cause === 'shutting-down' ? undefined : droppedReason };
  if (cause === 'ttl-expired' && hasEndpoints?.() === false)
    return { status: 503, droppedReason: droppedReasons['no-endpoints'] };
  return { status: llmD[cause] ?? status, droppedReason };
}

/** Platforms throw at a status or a header that they cannot write, and some throw where nobody can catch it. */
function checkedMapping(mapping: HttpErrorMapping): HttpErrorMapping {
  const { status, droppedReason = '-' } = mapping;
  const isRight = Number.isInteger(status) && status >= 200 && status <= 999 && isHeaderText(droppedReason);
  return sendable(mapping, isRight, 'contract', 'a status from 200 to 999');
}

/** The answer of a host's function, checked before it is sent. @throws FlowConfigError */
export function sendable<A>(answer: A, isRight: boolean, path: string, what: string): A {
  if (isRight) return answer;
  const expected = `${what}, and header values of text`;
  throw new FlowConfigError('flowControl', [{ path, expected, got: describeValue(answer) }]);
}

export function isHeaderText(text: unknown): boolean {
  return typeof text === 'string' && /^[\t\x20-\x7e\x80-\xff]+$/.test(text);
}
