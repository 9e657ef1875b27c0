/** The store of another process or thread of this machine, reached by messages. */
import { type CallPort, calls, channelIsClosed } from '../../base/calls.js';
import { Listeners } from '../../base/listeners.js';
import * as s from '../../base/schema/schema.js';
import type { LinkFigures, Store, StoreMessages } from '../index.js';
import { type StoreQuestion, storePort } from './serve-store.js';

/**
 * In a worker: the store that `serveStore` serves under this name. When the other end is gone, calls are rejected, and
 * leases fall back to their safe share. End the worker then: a store that begins anew does not know what it runs.
 * @throws FlowConfigError
 * @example const shared = sharedConcurrency(workerStore(process), { pool: 'chat', maxConcurrency: 64 });
 */
export function workerStore(port: CallPort, name = 'store'): Store & { readonly messages: StoreMessages } {
  const channel = s.parse(storePort, port, 'workerStore: port');
  const topics = new Map<string, Set<(message: string) => void>>();
  const lost = new Listeners<[error: unknown]>();
  const found = new Listeners();
  let figures: LinkFigures | undefined;

  function hear({ what, name: topic, args }: StoreQuestion): void {
    if (what === 'message') for (const listener of [...(topics.get(topic) ?? [])]) listener(String(args?.[0]));
    else if (what === 'ready') found.announce();
    else if (what === 'figures') figures = JSON.parse(topic);
    else lost.announce(new Error(topic));
  }
  const holder = calls(channel, name, hear);
  const ended = (): void => hear({ what: 'error', name: channelIsClosed });
  channel.on('disconnect', ended);
  channel.on('close', ended);

  return {
    run: ({ name: script }, keys, args) => holder.ask({ what: 'run', name: script, keys, args }),
    get figures() {
      return figures;
    },
    onError: lost.subscribe,
    onReady: found.subscribe,
    messages: {
      publish: (topic, message) => holder.ask({ what: 'publish', name: topic, args: [message] }),
      async subscribe(topic, listener) {
        await holder.ask({ what: 'subscribe', name: topic });
        topics.set(topic, (topics.get(topic) ?? new Set()).add(listener));
        return async () => topics.get(topic)?.delete(listener);
      },
    },
  };
}
