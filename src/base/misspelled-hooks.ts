/** Finds methods whose names are nearly those of hooks, so that they would never be called. */
import { nearest } from './faults/did-you-mean.js';
import { memberOf } from './faults/foreign-values.js';

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
  for (
    let level = plugin;
    level !== null && level !== Object.prototype;
    level = Reflect.getPrototypeOf(level) as object
  ) {
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(level))) {
      if (typeof value === 'function' && name !== 'constructor') names.add(name);
    }
  }
  return names;
}
