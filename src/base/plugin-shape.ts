/** The shape by which a plugin of a kind is known. Contracts describe theirs beside their interfaces. */

import { isAsyncFunction } from './async-function.js';
import { nearest } from './faults/did-you-mean.js';
import { memberOf } from './faults/foreign-values.js';
import * as s from './schema/schema.js';

/** The parts of a plugin that can be checked before it is called: its type name and its methods. */
export interface PluginShape<P extends { readonly type: string }> {
  /** The kind with its article, for messages: `an ordering policy`. */
  readonly noun: string;
  /** How a host makes one. */
  readonly example: string;
  readonly required: readonly MethodsOf<P>[];
  readonly optional: readonly MethodsOf<P>[];
  /** A property that, when true, stands in for the required methods. */
  readonly unless?: string;
}

type MethodsOf<P> = P extends unknown ? Exclude<keyof P & string, 'type'> : never;

/** A schema of plugins of this shape; it reports what the candidate lacks. */
export function pluginOfShape<P extends { readonly type: string }>(shape: PluginShape<P>): s.Schema<P> {
  return s.element((candidate, report) => (hasShape(shape, candidate, report) ? candidate : undefined));
}

function hasShape<P extends { readonly type: string }>(
  shape: PluginShape<P>,
  candidate: unknown,
  report: s.Report,
): candidate is P {
  const { noun, example, required, optional, unless } = shape;
  if (typeof candidate !== 'object' || candidate === null || Array.isArray(candidate)) {
    const got = typeof candidate === 'function' ? 'a function: call it if it makes one' : undefined;
    report(`${noun}, such as ${example}`, [], got);
    return false;
  }
  const member = (key: string): unknown => memberOf(candidate, key);
  const hasType = typeof member('type') === 'string' && member('type') !== '';
  if (!hasType) report(`the type name of ${noun}`, ['type']);
  const isExcused = unless !== undefined && member(unless) === true;
  const missing = isExcused ? [] : required.filter((method) => typeof member(method) !== 'function');
  for (const method of missing) report(`a method: ${noun} must have "${method}"`, [method]);
  const wrong = optional.filter((method) => member(method) !== undefined && typeof member(method) !== 'function');
  for (const method of wrong) report(`a method, or nothing: ${noun} may have "${method}"`, [method]);
  const contract: readonly string[] = [...required, ...optional];
  const late = contract.filter((method) => isAsyncFunction(member(method)));
  for (const method of late) report('a method that answers at once', [method], 'an async function');
  const misses = misspelledHooks(candidate, contract);
  const uncalled = `a method that ${noun} never has called`;
  for (const { given, meant } of misses)
    report(`the name "${meant}", or one that cannot be taken for it`, [given], uncalled);
  return hasType && missing.length + wrong.length + late.length + misses.length === 0;
}

export interface MisspelledHook {
  readonly given: string;
  readonly meant: string;
}

/** The misspelled hooks among the methods of `plugin` and of its class: `onDispatched` is one of `dispatched`. */
export function misspelledHooks(plugin: object, contract: readonly string[]): MisspelledHook[] {
  const absent = contract.filter((hook) => memberOf(plugin, hook) === undefined);
  const misses: MisspelledHook[] = [];
  for (const given of methodsOf(plugin)) {
    if (contract.includes(given)) continue;
    const meant = nearest(given.replace(/^(?:on|handle)(?=[A-Z])/, ''), absent);
    if (meant !== undefined) misses.push({ given, meant });
  }
  return misses;
}

/** Getters are not read: they may have effects. */
function methodsOf(plugin: object): Set<string> {
  const names = new Set<string>();
  for (let level = plugin; level !== Object.prototype; level = Reflect.getPrototypeOf(level) ?? Object.prototype)
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(level)))
      if (typeof value === 'function' && name !== 'constructor') names.add(name);
  return names;
}
