/**
 * What befalls servers. The gateway learns of an outage at once, as from a connection that breaks: the endpoint counts
 * as ill. A request that ran there and has sent nothing yet is tried again, as a gateway tries another server; an
 * answer that has begun is lost. Nobody is told of a slowdown, for example because a GPU throttles, or because a
 * neighbour takes the memory's bandwidth: the gateway sees only that requests take longer there. Invariant: at any
 * instant a server runs at the product of the factors that hold then, and at its own pace where none does.
 */
import { configError } from '../../base/faults/flow-config-error.js';
import * as s from '../../base/schema/schema.js';
import type { Schema } from '../../index.js';
import type { VirtualClock } from '../clock/virtual-clock.js';
import type { SimServer } from './sim-server.js';

/** A server that dies, and comes back. */
export interface Outage {
  /** Name of the server, with its number where there are several alike: `gpu-1`. */
  readonly server: string;
  /** When it begins, ms. */
  readonly at: number;
  /** How long it lasts, ms. @default for ever */
  readonly for?: number | undefined;
}

/** A server that becomes slow, and is fast again later. */
export interface Slowdown extends Outage {
  /** How many times as long everything takes there; above 0. Factors of slowdowns that overlap are multiplied. */
  readonly factor: number;
}

const shape = {
  server: s.text('the name of a server'),
  at: s.duration('20s'),
  for: s.optional(s.durationAboveZero('15s')),
};

export const outageShape: Schema<Outage> = s.object(shape);

export const slowdownShape: Schema<Slowdown> = s.object(s.withKeys(shape, { factor: s.aboveZero() }));

/** @throws FlowConfigError for a server whose model has one pace only */
export function slowDown(slowdowns: readonly Slowdown[], servers: readonly SimServer[], clock: VirtualClock): void {
  for (const [index, { server: id, at, for: lengthMs = Infinity }] of slowdowns.entries()) {
    const server = servers.find((each) => each.id === id);
    if (server?.slowDown === undefined) {
      const expected = 'a server whose model has the method slowDown';
      throw configError('simulation', `slowdowns[${index}].server`, expected, JSON.stringify(id));
    }
    const isOn = (each: Slowdown): boolean =>
      each.server === id && each.at <= clock.now() && clock.now() < each.at + (each.for ?? Infinity);
    const change = (): void =>
      server.slowDown?.(slowdowns.filter(isOn).reduce((product, { factor }) => product * factor, 1));
    clock.at(at, change);
    clock.at(at + lengthMs, change);
  }
}
