/** Puts a value into a map and returns it: `map.get(key) ?? put(map, key, new Value())` makes what is missing. */
export function put<K, V>(map: { set(key: K, value: V): unknown }, key: K, value: V): V {
  map.set(key, value);
  return value;
}
