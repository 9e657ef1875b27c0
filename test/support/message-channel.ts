/**
 * Publish and subscribe in one process, of the kind of node-redis: a message is under way until `deliver`, unless the
 * channel is instant.
 */
import {
  type MessagePublisher,
  type MessageSubscriber,
  type NodeRedisSubscriber,
  redisStore,
  type Store,
} from '../../src/redis/index.js';

export interface Connection {
  readonly publisher: MessagePublisher;
  readonly subscriber: MessageSubscriber;
}

/** A store that carries messages and runs no scripts. */
export function messageStore({ publisher, subscriber }: Connection): Store {
  const fails = (): Promise<never> => Promise.reject(new Error('no scripts'));
  const publish: MessagePublisher['publish'] = (channel, message) => publisher.publish(channel, message);
  return redisStore({ evalsha: fails, eval: fails, publish }, subscriber);
}

export class MessageChannel {
  readonly log: string[] = [];
  isInstant = false;
  /** Decides whether a message gets lost. */
  loses: () => boolean = () => false;
  private readonly underWay: [channel: string, message: string][] = [];
  private readonly listeners = new Map<(message: string) => void, string>();

  connect(): Connection & { readonly subscriber: NodeRedisSubscriber } {
    const own = new Set<(message: string) => void>();
    return {
      publisher: {
        publish: async (channel, message) => {
          this.log.push(message);
          if (!this.loses()) this.underWay.push([channel, message]);
          if (this.isInstant) this.deliver();
        },
      },
      subscriber: {
        subscribe: async (channel, listener) => {
          own.add(listener);
          this.listeners.set(listener, channel);
        },
        unsubscribe: async () => {
          for (const listener of own) this.listeners.delete(listener);
        },
      },
    };
  }

  get listening(): number {
    return this.listeners.size;
  }

  /** A message that no replica sent. */
  inject(channel: string, message: string): void {
    this.underWay.push([channel, message]);
    this.deliver();
  }

  /** Everything that is under way arrives. */
  deliver(): void {
    for (let next = this.underWay.shift(); next !== undefined; next = this.underWay.shift()) {
      const [channel, message] = next;
      for (const [listener, heard] of this.listeners) if (heard === channel) listener(message);
    }
  }
}
