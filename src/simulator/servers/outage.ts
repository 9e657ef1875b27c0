/**
 * Servers that die, and come back. The gateway learns of it at once, as from a connection that breaks: the endpoint
 * counts as ill. A request that ran there and has sent nothing yet is tried again, as a gateway tries another server;
 * an answer that has begun is lost.
 */
import { object } from '../../base/schema/containers.js';
import { optional } from '../../base/schema/element.js';
import { duration, durationAboveZero, text } from '../../base/schema/types.js';
import type { Schema } from '../../index.js';

export interface Outage {
  /** Name of the server, with its number where there are several alike: `gpu-1`. */
  readonly server: string;
  /** When it dies, ms. */
  readonly at: number;
  /** How long it is gone, ms. @default for ever */
  readonly for?: number | undefined;
}

export const outageShape: Schema<Outage> = object({
  server: text('the name of a server'),
  at: duration('20s'),
  for: optional(durationAboveZero('15s')),
}) as Schema<Outage>;
