/** Replicas tell which servers refuse. Invariant: a mark is not sent on, and runs out: a lost one costs a refusal. */
import * as s from '../../base/schema/schema.js';
import { parseJson } from '../../base/stream/content-pieces.js';
import { type EndpointPool, type EndpointView, realClock } from '../../index.js';
import { keepListening } from '../store/keep-listening.js';
import { channelOf } from '../store/keys.js';
import { storeWithMessages } from '../store/redis-store.js';
import type { Store } from '../store/store.js';
import { keyName, newReplicaId, storeShape } from '../store/store-options.js';

export interface SharedMarksOptions {
  /** Replicas with this name share their marks. */
  readonly name: string;
  /** Opens the name of the channel. @default 'headgate' */
  readonly prefix?: string | undefined;
}

export interface SharedMarks {
  readonly sent: number;
  readonly received: number;
  /** Stops to publish and to subscribe. Never rejects. */
  close(): Promise<void>;
}

/** A mark from another replica lasts no longer than this, whatever the message says. */
const longestMs = 600_000;
const sameMs = 50;

const optionsSchema = s.object({ name: keyName, prefix: storeShape.prefix });
const markSchema = s.openObject({ from: s.text(), endpoint: s.text(), forMs: s.aboveZero() });

/** Shares a pool's overload marks by IDs that are alike everywhere: a message a refusal. @throws FlowConfigError */
export function sharedMarks(store: Store, pool: EndpointPool, options: SharedMarksOptions): SharedMarks {
  const { messages } = s.parse(storeWithMessages, store, 'sharedMarks: store');
  const channel = channelOf(s.parse(optionsSchema, options, 'sharedMarks'), 'marks');
  const self = newReplicaId();
  /** For each endpoint, the end of the last mark that came from another replica. */
  const fromElsewhere = new WeakMap<EndpointView, number>();
  const marks = {
    sent: 0,
    received: 0,
    close() {
      stop();
      return stopListening();
    },
  };

  const stop = pool.on('overloaded', (endpoint) => {
    const untilMs = endpoint.overloadedUntilMs;
    const forMs = Math.round(untilMs - pool.now());
    if (forMs <= 0 || Math.abs((fromElsewhere.get(endpoint) ?? 0) - untilMs) < sameMs) return;
    marks.sent++;
    const message = JSON.stringify({ from: self, endpoint: endpoint.id, forMs });
    // If a mark cannot be published, it holds for this replica alone.
    Promise.resolve(messages.publish(channel, message)).catch(() => {});
  });

  function receive(message: string): void {
    const read = s.validate(markSchema, parseJson(message));
    const endpoint = read.ok && read.value.from !== self ? pool.get(read.value.endpoint) : undefined;
    if (!read.ok || endpoint === undefined) return;
    const forMs = Math.min(read.value.forMs, longestMs);
    marks.received++;
    fromElsewhere.set(endpoint, pool.now() + forMs);
    pool.markOverloaded(endpoint, forMs);
  }

  const stopListening = keepListening(messages, channel, receive, realClock);
  return marks;
}
