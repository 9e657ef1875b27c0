/**
 * The channel between a store and the workers that it serves. Every message is marked, because a channel of processes
 * carries those of others as well.
 */
import { element, type Report } from '../../base/schema/element.js';
import type { Schema } from '../../index.js';

type Listen = (event: string, listener: (value: unknown) => void) => unknown;

/**
 * One end of a channel: a worker of `node:cluster`, a child with an IPC channel and `process` in it; a worker of
 * `node:worker_threads`, `parentPort` in it, or a `MessagePort`.
 */
export type StorePort = { readonly on: Listen; readonly off: Listen } & (
  | { send?: ((message: object) => unknown) | undefined; readonly connected?: boolean | undefined }
  | { postMessage(message: object): unknown }
);

/** A question of a worker, its answer, or a message that was published. */
export interface StoreMessage {
  readonly headgate: 'run' | 'publish' | 'subscribe' | 'answer' | 'failure' | 'message';
  /** Who asks, and the number of the question. */
  readonly store: string;
  readonly id: number;
  /** Of a script, or of a channel. */
  readonly name: string;
  readonly keys?: readonly string[];
  readonly args?: readonly string[];
  readonly value?: unknown;
}

/** Undefined for what is not ours. */
export function storeMessage(given: unknown): StoreMessage | undefined {
  const { headgate, store, id }: Partial<StoreMessage> = { ...Object(given) };
  const isOurs = typeof headgate === 'string' && typeof store === 'string' && typeof id === 'number';
  return isOurs ? (given as StoreMessage) : undefined;
}

/** False when the channel is closed: the other end is gone, or will be. */
export function post(port: StorePort, message: StoreMessage): boolean {
  try {
    if ('postMessage' in port) port.postMessage(message);
    else if (port.connected === false || port.send === undefined) return false;
    // Without a function, a channel that breaks now would be an error of the process.
    else (port.send as (message: object, done: () => void) => unknown)(message, () => {});
    return true;
  } catch {
    return false;
  }
}

export const storePort: Schema<StorePort> = element((given, report: Report) => {
  const { on, off, send, postMessage }: Record<string, unknown> = Object(given);
  if ([on, off, send ?? postMessage].every((each) => typeof each === 'function')) return given as StorePort;
  report('a worker, a MessagePort, or process with an IPC channel');
  return undefined;
});
