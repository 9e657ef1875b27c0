/** Of two plugins of one definition with equal parameters and references a controller keeps its own, which learnt. */
export interface PluginOrigin {
  /** The definition that made it; compared by identity. */
  readonly definition: object;
  /** As its schema read them, defaults filled in. */
  readonly parameters: unknown;
  /** The plugins that its parameters name. */
  readonly references: readonly object[];
}

const origins = new WeakMap<object, PluginOrigin>();

/** Notes how a plugin was made. One that its factory hands out again and again has the latest origin. */
export function noteOrigin(plugin: object, origin: PluginOrigin): void {
  origins.set(plugin, origin);
}

/** True for one object, and for two that were made alike from files. Plugins that code made are all different. */
export function isSamePlugin(a: object, b: object): boolean {
  if (a === b) return true;
  const one = origins.get(a);
  const other = origins.get(b);
  if (one === undefined || other === undefined || one.definition !== other.definition) return false;
  if (!isEqual(one.parameters, other.parameters) || one.references.length !== other.references.length) return false;
  // Nothing but the object itself: a kept policy would go on asking a detector that is not in force any more.
  return one.references.every((reference, i) => reference === other.references[i]);
}

/** Values as files have them: of everything but lists and plain objects, only one and the same value is equal. */
function isEqual(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (!isPlain(a) || !isPlain(b) || Array.isArray(a) !== Array.isArray(b)) return false;
  const keys = Object.keys(a);
  if (keys.length !== Object.keys(b).length) return false;
  return keys.every((key) => Object.hasOwn(b, key) && isEqual(a[key], b[key]));
}

function isPlain(candidate: unknown): candidate is Record<string, unknown> {
  if (typeof candidate !== 'object' || candidate === null) return false;
  const prototype: unknown = Object.getPrototypeOf(candidate);
  return prototype === Object.prototype || prototype === Array.prototype || prototype === null;
}
