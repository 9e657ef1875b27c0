/**
 * The one place that contains foreign code. It reports exceptions and wrong answers of plugins, and lets them go no
 * further.
 *
 * Invariant: no method throws, whatever the plugin did, and no promise that a plugin answers ends the process when it
 * is rejected.
 */
import { disown, textOf } from './foreign-values.js';
import type { PluginErrorSink, PluginKind } from './plugin-errors.js';

export class PluginGuard {
  private readonly kind: PluginKind;
  private readonly type: string;
  private readonly errors: PluginErrorSink;

  constructor(kind: PluginKind, { type }: { readonly type: string }, errors: PluginErrorSink) {
    this.kind = kind;
    this.type = type;
    this.errors = errors;
  }

  /** A member of the plugin, or of a part of it; undefined when it cannot be read. */
  read<P extends object, M extends keyof P>(part: P, member: M): P[M] | undefined {
    try {
      return part[member];
    } catch (error) {
      this.failed(error);
      return undefined;
    }
  }

  /** False when there is no such method. One that cannot be read now may be there later. */
  has<P extends object>(part: P, method: keyof P): boolean {
    try {
      return part[method] !== undefined;
    } catch (error) {
      this.failed(error);
      return true;
    }
  }

  /** The plugin threw. */
  failed(error: unknown): void {
    this.errors.pluginFailed(this.kind, this.type, error);
  }

  /** The plugin answered what its contract does not allow. `rule` is a sentence without its end. */
  violated(rule: string, answer: unknown): void {
    this.failed(new TypeError(`${rule}; got ${textOf(answer)}`));
    this.ignored(answer);
  }

  /** The plugin answered a call that has no answer. */
  ignored(answer: unknown): void {
    if (answer !== undefined) disown(answer, (error) => this.failed(error));
  }
}
