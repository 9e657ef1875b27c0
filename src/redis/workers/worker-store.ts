/**
 * The store of another process or thread of this machine, reached by messages.
 *
 * Invariant: every call settles, unless the other end lives and says nothing; who calls has a time limit for that.
 */
import { parse } from '../../base/schema/element.js';
import type { Store, StoreMessages } from '../index.js';
import { post, type StoreMessage, type StorePort, storeMessage, storePort } from './channel.js';

interface Asker {
  resolve(reply: unknown): void;
  reject(error: Error): void;
}

/**
 * In a worker: the store that `serveStore` serves on the other end of `port`. When that end is gone, calls are
 * rejected, and leases fall back to their safe share. End the worker then: a store that begins anew does not know what
 * it runs.
 * @throws FlowConfigError
 * @example
 * const shared = sharedConcurrency(workerStore(process), { pool: 'chat', maxConcurrency: 64 });
 */
export function workerStore(port: StorePort): Store & { readonly messages: StoreMessages } {
  const channel = parse(storePort, port, 'workerStore: port');
  const store = globalThis.crypto.randomUUID();
  const askers = new Map<number, Asker>();
  const listeners = new Map<string, Set<(message: string) => void>>();
  const hearers = new Set<(error: unknown) => void>();
  let asked = 0;
  let isGone = false;

  function ask(question: Pick<StoreMessage, 'headgate' | 'name' | 'keys' | 'args'>): Promise<unknown> {
    const id = ++asked;
    return new Promise((resolve, reject) => {
      if (isGone || !post(channel, { store, id, ...question })) reject(gone());
      else askers.set(id, { resolve, reject });
    });
  }

  channel.on('message', (given) => {
    const message = storeMessage(given);
    if (message?.store !== store) return;
    const { headgate, id, name, value } = message;
    if (headgate === 'message') for (const listener of [...(listeners.get(name) ?? [])]) listener(String(value));
    else if (headgate === 'answer') askers.get(id)?.resolve(value);
    else askers.get(id)?.reject(new Error(String(value)));
    askers.delete(id);
  });
  const ended = (): void => {
    isGone = true;
    for (const { reject } of askers.values()) reject(gone());
    askers.clear();
    for (const hear of [...hearers]) hear(gone());
  };
  channel.on('disconnect', ended);
  channel.on('close', ended);

  return {
    run: ({ name }, keys, args) => ask({ headgate: 'run', name, keys, args }),
    onError(listener) {
      hearers.add(listener);
      return () => hearers.delete(listener);
    },
    messages: {
      publish: (name, message) => ask({ headgate: 'publish', name, args: [message] }),
      async subscribe(name, listener) {
        await ask({ headgate: 'subscribe', name });
        listeners.set(name, (listeners.get(name) ?? new Set()).add(listener));
        return async () => listeners.get(name)?.delete(listener);
      },
    },
  };
}

function gone(): Error {
  return new Error('the channel to the process that holds the store is closed');
}
