/** Of two plugins of one definition with equal parameters and references a controller keeps its own, which learnt. */
export interface PluginOrigin {
  /** True when the other came about in the same way. */
  isLike(other: PluginOrigin): boolean;
}

const origins = new WeakMap<object, PluginOrigin>();

/** Notes how a plugin was made. One that its factory hands out again and again has the latest origin. */
export function noteOrigin(plugin: object, origin: PluginOrigin): void {
  origins.set(plugin, origin);
}

/** True for one object, and for two that were made alike from files. Plugins that code made are all different. */
export function isSamePlugin(a: object, b: object): boolean {
  const other = origins.get(b);
  return a === b || (other !== undefined && origins.get(a)?.isLike(other) === true);
}
