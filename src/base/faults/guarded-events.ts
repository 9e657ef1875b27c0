/** An emitter that calls each listener inside a guard, so that a failing listener does not silence the next. */
import { EventEmitter } from 'eventemitter3';
import { checkListener } from './check-listener.js';
import { guardedListener } from './guarded-listener.js';
import { UnheardFaults } from './warn-operator.js';

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
  private readonly unheard = new UnheardFaults();
  private readonly names: readonly string[];

  /** `names` are all events besides `listenerError`. */
  constructor(...names: readonly Exclude<keyof Events & string, 'listenerError'>[]) {
    this.names = [...names, 'listenerError'];
  }

  /** Returns a function that stops this. @throws FlowConfigError when there is no such event, or nothing to call */
  on<E extends keyof Events & string>(event: E, listener: (payload: Events[E]) => unknown): () => void {
    checkListener(event, listener, this.names);
    const failed = (error: unknown): void => {
      // An error of a `listenerError` listener is dropped: to emit it again could loop.
      if (event === 'listenerError') return;
      const isHeard = this.emitter.emit('listenerError', { event, error } satisfies ListenerErrorEvent);
      if (!isHeard) this.unheard.tell(event, `a listener for "${event}" failed`, "on('listenerError', …)", error);
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
