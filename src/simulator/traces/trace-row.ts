/** One recorded request. */
import { list, object, optional } from '../../base/schema/element.js';
import { atLeastZero, integer, text } from '../../base/schema/types.js';
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

const traceRow: Schema<TraceRow> = object({
  arrivalMs: atLeastZero(),
  tenant: optional(text()),
  priority: optional(integer()),
  promptTokens: optional(atLeastZero()),
  outputTokens: optional(atLeastZero()),
  server: optional(text()),
  serviceMs: optional(atLeastZero()),
  queuedMs: optional(atLeastZero()),
  ttftMs: optional(atLeastZero()),
  totalMs: optional(atLeastZero()),
});

export const someRows: Schema<readonly TraceRow[]> = list(traceRow);
