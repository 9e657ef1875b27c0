/** Emitters that call each listener inside a guard, so that a failing listener does not silence the next. */
import { EventEmitter } from 'eventemitter3';
import { expectedWord } from './did-you-mean.js';
import { type ConfigIssue, describeValue, FlowConfigError } from './flow-config-error.js';
import { disown } from './foreign-values.js';
import { UnheardFaults } from './warn-operator.js';

export abstract class GuardedEmitter<Events> {
  protected readonly unheard: UnheardFaults = new UnheardFaults();
  private readonly emitter = new EventEmitter();

  protected abstract get names(): readonly string[];

  /** A listener for `event` threw, or its promise was rejected. */
  protected abstract failed(event: keyof Events & string, error: unknown): void;

  /** Returns a function that stops this. @throws FlowConfigError when there is no such event, or nothing to call */
  on<E extends keyof Events & string>(event: E, listener: (payload: Events[E]) => unknown): () => void {
    checkListener(event, listener, this.names);
    const failed = (error: unknown): void => this.failed(event, error);
    const guarded = (payload: Events[E]): void => {
      try {
        disown(listener(payload), failed);
      } catch (error) {
        failed(error);
      }
    };
    this.emitter.on(event, guarded);
    return () => void this.emitter.off(event, guarded);
  }

  emit<E extends keyof Events & string>(event: E, payload: Events[E]): void {
    this.emitter.emit(event, payload);
  }

  protected isHeard(event: keyof Events & string): boolean {
    return this.emitter.listenerCount(event) > 0;
  }
}

/** An emitter without this check would take the name of an event that never comes. */
function checkListener(event: string, listener: unknown, events: readonly string[]): void {
  const issues: ConfigIssue[] = [];
  if (!events.includes(event))
    issues.push({ path: 'event', expected: expectedWord(event, events), got: describeValue(event) });
  if (typeof listener !== 'function')
    issues.push({ path: 'listener', expected: 'a function', got: describeValue(listener) });
  if (issues.length > 0) throw new FlowConfigError('on', issues);
}

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

export class GuardedEvents<Events extends ListenerErrors> extends GuardedEmitter<Events> {
  protected readonly names: readonly string[];

  /** `names` are all events besides `listenerError`. */
  constructor(...names: readonly Exclude<keyof Events & string, 'listenerError'>[]) {
    super();
    this.names = [...names, 'listenerError'];
  }

  /** An error of a `listenerError` listener is dropped: to emit it again could loop. */
  protected failed(event: string, error: unknown): void {
    if (event === 'listenerError') return;
    if (this.isHeard('listenerError')) this.emit('listenerError', { event, error });
    else this.unheard.tell(event, `a listener for "${event}" failed`, "on('listenerError', …)", error);
  }
}
