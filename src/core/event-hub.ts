/** An emitter that calls each listener inside a guard, so that a failing listener does not silence the next. */
import { EventEmitter } from 'eventemitter3';
import { checkListener } from '../base/faults/check-listener.js';
import { guardedListener } from '../base/faults/guarded-listener.js';
import type { PluginErrorSink, PluginKind } from '../base/faults/plugin-errors.js';
import { UnheardFaults } from '../base/faults/warn-operator.js';
import { type FlowEvents, unheardEvents } from './events.js';

export class EventHub implements PluginErrorSink {
  /** Faults of foreign code so far. */
  pluginErrors = 0;
  /** Which events have listeners: ask before building a payload. Properties, because a request reads them often. */
  readonly heard: Record<keyof FlowEvents, boolean> = unheardEvents();
  private readonly emitter = new EventEmitter();
  private readonly unheard = new UnheardFaults();

  /**
   * Returns a function that stops this.
   * @throws FlowConfigError when there is no such event, or nothing to call
   */
  on<E extends keyof FlowEvents>(event: E, listener: (payload: FlowEvents[E]) => unknown): () => void {
    checkListener(event, listener, Object.keys(this.heard));
    const failed = (error: unknown): void => {
      if (event === 'pluginError') this.pluginErrors++;
      else this.pluginFailed('listener', event, error);
    };
    const guarded = guardedListener(listener, failed);
    this.emitter.on(event, guarded);
    this.heard[event] = true;
    return () => {
      this.emitter.off(event, guarded);
      this.heard[event] = this.emitter.listenerCount(event) > 0;
    };
  }

  emit<E extends keyof FlowEvents>(event: E, payload: FlowEvents[E]): void {
    this.emitter.emit(event, payload);
  }

  pluginFailed(kind: PluginKind, type: string, error: unknown): void {
    this.pluginErrors++;
    if (this.heard.pluginError) this.emit('pluginError', { kind, type, error });
    else
      this.unheard.tell(
        kind,
        `the ${kind} "${type}" failed, and a fallback stood in`,
        "flow.on('pluginError', …)",
        error,
      );
  }
}
