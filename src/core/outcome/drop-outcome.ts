/** A drop as the host gets it: plain fields, and an explanation that is computed when it is read. */
import { explainOutcome, type GateReading } from './explain-outcome.js';
import type { Explanation, LimitHit } from './explanation.js';
import type { Drop, DropReason, DropType } from './outcome.js';

/** Invariant: own enumerable properties are those of a plain `Drop`: copies, comparisons and JSON see nothing else. */
export class DropOutcome implements Drop {
  readonly type: DropType;
  readonly reason: DropReason;
  readonly fairnessId: string;
  readonly priority: number;
  readonly queuedMs: number;
  readonly limit: LimitHit | undefined;
  readonly policy: string | undefined;
  readonly detail: string | undefined;
  readonly retryAfterMs: number | undefined;
  readonly #reading: GateReading | undefined;

  constructor(plain: Drop, reading: GateReading | undefined) {
    this.type = plain.type;
    this.reason = plain.reason;
    this.fairnessId = plain.fairnessId;
    this.priority = plain.priority;
    this.queuedMs = plain.queuedMs;
    this.limit = plain.limit;
    this.policy = plain.policy;
    this.detail = plain.detail;
    this.retryAfterMs = plain.retryAfterMs;
    this.#reading = reading;
  }

  get explanation(): Explanation {
    return explainOutcome(this, this.#reading);
  }
}
