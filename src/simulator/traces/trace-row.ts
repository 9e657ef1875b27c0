/** One recorded request. */
import * as s from '../../base/schema/schema.js';
import type { Schema } from '../../index.js';

export interface TraceRow {
  /** From the beginning of the trace, ms from 0 up. Rows are in order. */
  readonly arrivalMs: number;
  readonly tenant?: string | undefined;
  readonly priority?: number | undefined;
  readonly promptTokens?: number | undefined;
  readonly outputTokens?: number | undefined;
  /** The server that answered. */
  readonly server?: string | undefined;
  /** On servers of slots: how long it takes, ms. */
  readonly serviceMs?: number | undefined;
  /** Measured times, for calibration and comparison, ms from the arrival; of the first, ms at the gateway. */
  readonly queuedMs?: number | undefined;
  readonly ttftMs?: number | undefined;
  readonly totalMs?: number | undefined;
}

const traceRow: Schema<TraceRow> = s.object({
  arrivalMs: s.atLeastZero(),
  ...s.optionals(s.text(), 'tenant', 'server'),
  priority: s.optional(s.integer()),
  ...s.optionals(s.atLeastZero(), 'promptTokens', 'outputTokens', 'serviceMs', 'queuedMs', 'ttftMs', 'totalMs'),
});

export const someRows: Schema<readonly TraceRow[]> = s.list(traceRow);
