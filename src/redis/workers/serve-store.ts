/**
 * Gives workers of this machine a store that this process holds.
 *
 *     worker ── run, by name ──► script ──► answer
 *     worker ends ──► what it held last is given back
 *
 * Invariant: after the end of a worker nothing that it has sent is done; a late call would take its share once more.
 */
import { type CallPort, calls } from '../../base/calls.js';
import { putLatest } from '../../base/put.js';
import * as s from '../../base/schema/schema.js';
import type { Schema } from '../../index.js';
import { type Store, type StoreScript, storeScripts } from '../index.js';
import { causeOf } from '../store/store-problem.js';

export type { CallPort as StorePort } from '../../base/calls.js';

/** What a worker asks; `message` and the state of the connection are told to it. */
export interface StoreQuestion {
  readonly what: 'run' | 'publish' | 'subscribe' | 'message' | 'error' | 'ready' | 'figures';
  readonly name: string;
  readonly keys?: readonly string[];
  readonly args?: readonly string[];
}

export const storePort: Schema<CallPort> = s.element((given, report: s.Report) => {
  const { on, off, send, postMessage }: Record<string, unknown> = Object(given);
  if ([on, off, send ?? postMessage].every((each) => typeof each === 'function')) return given as CallPort;
  return report('a worker, a MessagePort, or process with an IPC channel');
});

const isStore = (given: unknown): given is Store => typeof Object(given).run === 'function';
const storeSchema = s.value('localStore(), or redisStore(client)', isStore);

/** Calls of one worker that differ in their keys and may have to be taken back: those of its last sets of endpoints. */
const mostHeld = 64;

type Held = Readonly<{ script: StoreScript; keys: readonly string[]; args: readonly string[] }>;

/**
 * Serves `store` to a worker's `workerStore`; several of one port have names. When the process or thread has ended, or
 * the port is closed, its part of every limit is free at once. A store on Redis has one connection then for all
 * workers. Returns a function that ends it likewise. @throws FlowConfigError
 * @example
 * const store = localStore();
 * cluster.on('fork', (worker) => serveStore(store, worker));
 */
export function serveStore(store: Store, port: CallPort, name = 'store'): () => void {
  const given = s.parse(storeSchema, store, 'serveStore: store');
  const channel = s.parse(storePort, port, 'serveStore: port');
  /** The last call of each replica with each set of keys. */
  const held = new Map<string, Held>();
  const subscriptions = new Map<string, Promise<() => Promise<unknown>>>();

  async function run({ name: wanted, keys = [], args = [] }: StoreQuestion): Promise<unknown> {
    const script = storeScripts.find((each) => each.name === wanted);
    if (script === undefined) throw new Error(`no script "${wanted}" here: workers need the same version of headgate`);
    if (script.farewell !== undefined)
      putLatest(held, JSON.stringify([wanted, args[0], keys]), { script, keys, args }, mostHeld);
    const reply = await given.run(script, keys, args);
    if (given.figures !== undefined) worker.tell({ what: 'figures', name: JSON.stringify(given.figures) });
    return reply;
  }
  async function answer(question: StoreQuestion): Promise<unknown> {
    const { what, name: topic, args = [] } = question;
    const { messages } = given;
    if (what === 'run') return run(question);
    if (messages === undefined) throw new Error('the store carries no messages');
    if (what === 'publish') return messages.publish(topic, String(args[0]));
    const pass = (text: string): void => worker.tell({ what: 'message', name: topic, args: [text] });
    const subscribed = subscriptions.get(topic) ?? messages.subscribe(topic, pass);
    subscriptions.set(topic, subscribed);
    await subscribed.catch((error) => {
      subscriptions.delete(topic);
      throw error;
    });
    return undefined;
  }

  const worker = calls(channel, name, answer);
  const unhear = [
    given.onError((error) => worker.tell({ what: 'error', name: causeOf(error) })),
    given.onReady?.(() => worker.tell({ what: 'ready', name: '' })),
  ];
  const end = (): void => {
    worker.end();
    for (const stop of unhear) stop?.();
    for (const { script, keys, args } of held.values())
      given.run(script, keys, script.farewell?.(args) ?? args).catch(() => {});
    held.clear();
    for (const subscribed of subscriptions.values()) subscribed.then((stop) => stop()).catch(() => {});
    subscriptions.clear();
  };
  // A child that only disconnects may go on with its requests: its lease and its drain run out.
  channel.on('exit', end);
  channel.on('close', end);
  return end;
}
