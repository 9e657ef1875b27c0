/** The channel between a store and the workers that it serves. */
import type { CallPort } from '../../base/calls.js';
import * as s from '../../base/schema/schema.js';
import type { Schema } from '../../index.js';

export type { CallPort as StorePort } from '../../base/calls.js';

/** What a worker asks; `message` and the state of the connection are told to it. */
export interface StoreQuestion {
  readonly what: 'run' | 'publish' | 'subscribe' | 'message' | 'error' | 'ready';
  readonly name: string;
  readonly keys?: readonly string[];
  readonly args?: readonly string[];
}

export const storePort: Schema<CallPort> = s.element((given, report: s.Report) => {
  const { on, off, send, postMessage }: Record<string, unknown> = Object(given);
  if ([on, off, send ?? postMessage].every((each) => typeof each === 'function')) return given as CallPort;
  return report('a worker, a MessagePort, or process with an IPC channel');
});
