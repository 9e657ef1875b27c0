/**
 * Gives workers of this machine a store that this process holds.
 *
 *     worker ── run, by name ──► script ──► answer
 *     worker ends ──► what it held last is given back
 *
 * Invariant: after the end of a worker nothing that it has sent is done; a late call would take its share once more.
 */
import { parse, value } from '../../base/schema/element.js';
import { type Store, type StoreScript, storeScripts } from '../index.js';
import { post, type StoreMessage, type StorePort, storeMessage, storePort } from './channel.js';

const isStore = (given: unknown): given is Store => typeof Object(given).run === 'function';
const storeSchema = value('localStore(), or redisStore(client)', isStore);

/** Calls of one worker that differ in their keys and may have to be taken back: those of its last sets of endpoints. */
const mostHeld = 64;

interface Held {
  readonly script: StoreScript;
  readonly keys: readonly string[];
  readonly args: readonly string[];
}

/**
 * Serves `store` to a worker, which reaches it by `workerStore`. When the process or the thread has ended, or the port
 * is closed, its part of every limit is free at once: its requests went with it. Returns a function that ends it
 * likewise.
 * @throws FlowConfigError
 * @example
 * const store = localStore();
 * cluster.on('fork', (worker) => serveStore(store, worker));
 */
export function serveStore(store: Store, port: StorePort): () => void {
  const given = parse(storeSchema, store, 'serveStore: store');
  const channel = parse(storePort, port, 'serveStore: port');
  /** The last call of each replica with each set of keys. */
  const held = new Map<string, Held>();
  const subscriptions = new Map<string, Promise<() => Promise<unknown>>>();

  async function run({ name, keys = [], args = [] }: StoreMessage): Promise<unknown> {
    const script = storeScripts.find((each) => each.name === name);
    if (script === undefined) throw new Error(`no script "${name}" here: workers need the same version of headgate`);
    if (script.farewell !== undefined) {
      const call = JSON.stringify([name, args[0], keys]);
      held.delete(call);
      held.set(call, { script, keys, args });
      const [oldest = ''] = held.keys();
      if (held.size > mostHeld) held.delete(oldest);
    }
    return given.run(script, keys, args);
  }
  async function answer(question: StoreMessage): Promise<unknown> {
    const { headgate, store: asker, name, args } = question;
    const { messages } = given;
    if (headgate === 'run') return run(question);
    if (messages === undefined) throw new Error('the store carries no messages');
    if (headgate === 'publish') return messages.publish(name, String(args?.[0]));
    const pass = (text: string): void =>
      void post(channel, { headgate: 'message', store: asker, id: 0, name, value: text });
    const listener = `${asker} ${name}`;
    const subscribed = subscriptions.get(listener) ?? messages.subscribe(name, pass);
    subscriptions.set(listener, subscribed);
    await subscribed.catch((error) => {
      subscriptions.delete(listener);
      throw error;
    });
    return undefined;
  }

  const hear = (message: unknown): void => {
    const question = storeMessage(message);
    if (question === undefined || !['run', 'publish', 'subscribe'].includes(question.headgate)) return;
    const { store: asker, id, name } = question;
    answer(question).then(
      (reply) => post(channel, { headgate: 'answer', store: asker, id, name, value: reply }),
      ({ message: text }) => post(channel, { headgate: 'failure', store: asker, id, name, value: text }),
    );
  };
  const end = (): void => {
    channel.off('message', hear);
    for (const { script, keys, args } of held.values())
      given.run(script, keys, script.farewell?.(args) ?? args).catch(() => {});
    held.clear();
    for (const subscribed of subscriptions.values()) subscribed.then((stop) => stop()).catch(() => {});
    subscriptions.clear();
  };
  channel.on('message', hear);
  // A child that only disconnects may go on with its requests: its lease and its drain run out.
  channel.on('exit', end);
  channel.on('close', end);
  return end;
}
