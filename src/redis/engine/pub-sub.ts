/** Connections that publish and that listen, of node-redis, ioredis and iovalkey, by the methods that are used. */

/** A connection that publishes: any client. */
export interface MessagePublisher {
  publish(channel: string, message: string): Promise<unknown>;
}

/** A connection of node-redis that only listens: `client.duplicate()`, connected. */
export interface NodeRedisSubscriber {
  subscribe(channel: string, listener: (message: string) => void): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
}

/** A connection of ioredis or iovalkey that only listens. */
export interface IoRedisSubscriber {
  subscribe(channel: string): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  on(event: 'message', listener: (channel: string, message: string) => void): unknown;
  off(event: 'message', listener: (channel: string, message: string) => void): unknown;
}

export type MessageSubscriber = NodeRedisSubscriber | IoRedisSubscriber;

function isIoRedis(subscriber: MessageSubscriber): subscriber is IoRedisSubscriber {
  return 'evalsha' in subscriber;
}

/** Resolves to a function that stops listening. Rejects when the engine cannot be reached; then no message comes. */
export async function listen(
  subscriber: MessageSubscriber,
  channel: string,
  receive: (message: string) => void,
): Promise<() => void> {
  if (!isIoRedis(subscriber)) {
    await subscriber.subscribe(channel, receive);
    return () => {};
  }
  const onMessage = (from: string, message: string): void => {
    if (from === channel) receive(message);
  };
  subscriber.on('message', onMessage);
  try {
    await subscriber.subscribe(channel);
  } catch (error) {
    subscriber.off('message', onMessage);
    throw error;
  }
  return () => subscriber.off('message', onMessage);
}
