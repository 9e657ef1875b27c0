/** Contains foreign code and reports its faults. Invariant: no method throws, no rejected promise ends the process. */
import { disown, textOf } from './foreign-values.js';
import type { PluginErrorSink, PluginKind } from './plugin-errors.js';

interface AnyContract {
  hook(...given: readonly unknown[]): unknown;
}

/** A method of a plugin, and what it may answer. */
export interface Question<H extends string, A> {
  readonly hook: H;
  /** A sentence without its end. */
  readonly rule: string;
  /** The answer, perhaps as a copy; `wrong` if it breaks the rule. `given`: the first argument of the call. */
  read(answer: unknown, given: unknown): A | typeof wrong;
}

/* @__NO_SIDE_EFFECTS__ */ export function question<H extends string, A>(
  hook: H,
  rule: string,
  read: Question<H, A>['read'],
): Question<H, A> {
  return { hook, rule, read };
}

export const wrong: unique symbol = Symbol('an answer against the rule');

/* @__NO_SIDE_EFFECTS__ */ export function yesOrNo<H extends string>(hook: H): Question<H, boolean> {
  return question(hook, 'true or false', (answer) => (typeof answer === 'boolean' ? answer : wrong));
}

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

  /** Asks the plugin; undefined where it has no such method, throws, or breaks the rule. */
  ask<H extends string, A>(
    plugin: { readonly [K in H]?: AnyContract['hook'] | undefined },
    { hook, rule, read }: Question<H, A>,
    ...given: readonly unknown[]
  ): A | undefined {
    try {
      if (plugin[hook] === undefined) return undefined;
      const answer = plugin[hook](...given);
      const known = read(answer, given[0]);
      if (known !== wrong) return known;
      this.violated(`${hook} must return ${rule}`, answer);
    } catch (error) {
      this.failed(error);
    }
    return undefined;
  }

  tell<H extends string>(
    plugin: { readonly [K in H]?: AnyContract['hook'] | undefined },
    hook: H,
    ...news: readonly unknown[]
  ): void {
    try {
      if (plugin[hook] !== undefined) this.ignored(plugin[hook](...news));
    } catch (error) {
      this.failed(error);
    }
  }

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
