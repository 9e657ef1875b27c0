/** Where replicas keep what they share. Invariant: a script runs as one step, and its clock is the store's. */

import type { StoreFigures } from '../../base/lease-figures.js';
import type { StoreProblem } from './store-problem.js';

/** Figures of the calls. */
export interface LinkFigures extends StoreFigures {
  /** The last problem; undefined since the store answers. */
  readonly problem: StoreProblem | undefined;
}

export type Texts = readonly string[];

/** A step of the store, in both of its forms. Every form makes the same of the same. */
export interface StoreScript {
  /** Processes that share one memory ask each other for it by this name. */
  readonly name: string;
  /** In Lua, for a server. */
  readonly text: string;
  /** For the memory of a process, which `memory` stands for. */
  readonly local: (memory: object, keys: readonly string[], args: readonly string[], nowUs: number) => string[];
  /** Arguments that take the call with `args` back, once its caller is known to be gone with all that it ran. */
  readonly farewell?: ((args: readonly string[]) => string[]) | undefined;
}

export interface Store {
  /** Runs a script. Rejects with the words of the store. */
  run(script: StoreScript, keys: readonly string[], args: readonly string[]): Promise<unknown>;
  /** Listens to errors of the connection, because no call rejects with them; returns a function that stops this. */
  onError(listener: (error: unknown) => void): () => void;
  /** True while the connection is being made, so that a call can wait for it. */
  isConnecting?(): boolean;
  /** Listens to connections that have been made; returns a function that stops this. */
  onReady?(listener: () => void): () => void;
  /** Of the calls that another process makes for several, as far as it told. */
  readonly figures?: LinkFigures | undefined;
  /** Undefined for a client without a connection that only listens. */
  readonly messages?: StoreMessages | undefined;
}

export interface StoreMessages {
  publish(channel: string, message: string): Promise<unknown>;
  /** Resolves, once it listens, to a function that stops this. Rejects when the store cannot be reached. */
  subscribe(channel: string, listener: (message: string) => void): Promise<() => Promise<unknown>>;
}
