/** A store in this process, also for children of one parent. Invariant: what a script keeps has an end. */
import { type Clock, FlowConfigError, realClock } from '../../index.js';
import type { Store } from './store.js';

/** @throws FlowConfigError */
export function localStore({ clock = realClock }: { readonly clock?: Clock | undefined } = {}): Store {
  if (typeof clock?.now !== 'function') {
    throw new FlowConfigError('localStore', [{ path: 'clock', expected: 'a clock with now()', got: typeof clock }]);
  }
  const listeners = new Map<string, Set<(message: string) => void>>();
  /** Nothing of it is ever lost while the process lives: leases need not learn who holds what. */
  const memory = { isLasting: true };
  /** As an instant of a real store, so that 0 is long ago. */
  const startUs = Date.now() * 1_000 - clock.now() * 1_000;
  return {
    run: async (script, keys, args) => script.local(memory, keys, args, Math.floor(startUs + clock.now() * 1_000)),
    onError: () => () => {},
    messages: {
      async publish(channel, message) {
        await undefined;
        const heard = [...(listeners.get(channel) ?? [])];
        for (const listener of heard) listener(message);
        return heard.length;
      },
      async subscribe(channel, listener) {
        const heard = listeners.get(channel) ?? new Set();
        listeners.set(channel, heard.add(listener));
        return async () => heard.delete(listener);
      },
    },
  };
}
