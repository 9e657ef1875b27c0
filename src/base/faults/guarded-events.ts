/** An emitter that calls each listener inside a guard, so that a failing listener does not silence the next. */
import { EventEmitter } from 'eventemitter3';
import { guardedListener } from './guarded-listener.js';

/** A listener that threw, or whose promise was rejected. */
export interface ListenerErrorEvent {
  /** The event that it listened to. */
  readonly event: string;
  readonly error: unknown;
}

/** The event that every emitter has besides its own. */
export interface ListenerErrors {
  listenerError: ListenerErrorEvent;
}

export class GuardedEvents<Events extends ListenerErrors> {
  private readonly emitter = new EventEmitter();

  /** Returns the way to stop. */
  on<E extends keyof Events & string>(event: E, listener: (payload: Events[E]) => unknown): () => void {
    const failed = (error: unknown): void => {
      // An error of a `listenerError` listener is dropped: to emit it again could loop.
      if (event !== 'listenerError') this.emitter.emit('listenerError', { event, error } satisfies ListenerErrorEvent);
    };
    const guarded = guardedListener(listener, failed);
    this.emitter.on(event, guarded);
    return () => {
      this.emitter.off(event, guarded);
    };
  }

  emit<E extends keyof Events & string>(event: E, payload: Events[E]): void {
    this.emitter.emit(event, payload);
  }
}
