/** Puts a value into a map and returns it: `map.get(key) ?? put(map, key, new Value())` makes what is missing. */
export function put<K, V>(map: { set(key: K, value: V): unknown }, key: K, value: V): V {
  map.set(key, value);
  return value;
}

/** Puts a value last; of more than `most` the one goes that was put longest ago. */
export function putLatest<K, V>(map: Map<K, V>, key: K, value: V, most: number): void {
  map.delete(key);
  map.set(key, value);
  if (map.size > most) map.delete(map.keys().next().value as K);
}
