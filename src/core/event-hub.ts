/** The controller's emitter: it knows which events are heard, and counts faults of foreign code. */
import { GuardedEmitter } from '../base/faults/guarded-events.js';
import type { PluginErrorSink, PluginKind } from '../base/faults/plugin-errors.js';
import { type FlowEvents, unheardEvents } from './events.js';

export class EventHub extends GuardedEmitter<FlowEvents> implements PluginErrorSink {
  /** Faults of foreign code so far. */
  pluginErrors = 0;
  /** Which events have listeners: ask before building a payload. Properties, because a request reads them often. */
  readonly heard: Record<keyof FlowEvents, boolean> = unheardEvents();

  override on<E extends keyof FlowEvents>(event: E, listener: (payload: FlowEvents[E]) => unknown): () => void {
    const stop = super.on(event, listener);
    this.heard[event] = true;
    return () => {
      stop();
      this.heard[event] = this.isHeard(event);
    };
  }

  pluginFailed(kind: PluginKind, type: string, error: unknown): void {
    this.pluginErrors++;
    if (this.heard.pluginError) return void this.emit('pluginError', { kind, type, error });
    const what = `the ${kind} "${type}" failed, and a fallback stood in`;
    this.unheard.tell(kind, what, "flow.on('pluginError', …)", error);
  }

  protected get names(): readonly string[] {
    return Object.keys(this.heard);
  }

  protected failed(event: keyof FlowEvents, error: unknown): void {
    if (event === 'pluginError') this.pluginErrors++;
    else this.pluginFailed('listener', event, error);
  }
}
