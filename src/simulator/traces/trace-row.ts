/** One recorded request. */
import * as s from '../../base/schema/schema.js';
import type { Schema } from '../../index.js';
import { figureColumns } from './trace-formats.js';

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
  /** How long it held its seat at the gateway, up to its end. */
  readonly heldMs?: number | undefined;
  readonly ttftMs?: number | undefined;
  readonly totalMs?: number | undefined;
}

const traceRow: Schema<TraceRow> = s.object({
  arrivalMs: s.atLeastZero(),
  ...s.optionals(s.text(), 'tenant', 'server'),
  priority: s.optional(s.integer()),
  ...s.optionals(s.atLeastZero(), ...Object.values(figureColumns).map(({ of }) => of)),
});

export const someRows: Schema<readonly TraceRow[]> = s.list(traceRow);
