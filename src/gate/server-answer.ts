/** Reports of a host about a running request: the answer of its server, and the seat that it holds. */
import { type ConfigIssue, describeValue, FlowConfigError } from '../base/faults/flow-config-error.js';
import type { HeaderSource } from '../base/headers/header-source.js';
import type { ItemView, Usage } from '../tiers/views.js';

/** The head of a server's answer, as `lease.answered` takes it. The `Response` of fetch is one. */
export interface ServerAnswer {
  /** The HTTP status, 100 to 599. */
  readonly status: number;
  /** A web `Headers`, Node's `IncomingMessage.headers`, or a plain object with names in any case. */
  readonly headers: HeaderSource;
  /** The text of a refusal, if the host read it: some servers say there how long to wait. Anything else is ignored. */
  readonly body?: unknown;
}

/** The seat of a running request as detectors see it: the same object from its dispatch to its release. */
export interface SeatView<R = unknown> {
  /** Its `request` may be gone by the time of an answer: note at `dispatched` what is needed later. */
  readonly item: ItemView<R>;
  /** The usage that the host reported so far; zeros before the first report. */
  readonly usage: Usage;
  /** True once the host reported what the request consumed. */
  readonly isReported: boolean;
  /** True when the host told with `lease.unsent` that nothing of the request has reached a server. */
  readonly isUnsent: boolean;
}

/** @throws FlowConfigError for what is no answer of a server */
export function checkAnswer({ status, headers }: ServerAnswer): void {
  const issues: ConfigIssue[] = [];
  if (!(Number.isInteger(status) && status >= 100 && status <= 599))
    issues.push({ path: 'status', expected: 'an HTTP status, an integer from 100 to 599', got: describeValue(status) });
  if (typeof headers !== 'object' || headers === null)
    issues.push({ path: 'headers', expected: 'Headers, or an object of headers', got: describeValue(headers) });
  if (issues.length > 0) throw new FlowConfigError('lease.answered', issues);
}

/** True for an answer that tells the caller to come back later: 429, and 529 of an overloaded Anthropic. */
export function isPuttingOff({ status }: ServerAnswer): boolean {
  return status === 429 || status === 529;
}
