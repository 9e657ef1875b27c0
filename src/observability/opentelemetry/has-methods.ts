/** A check by shape: the API and its implementations come in several copies. */
export function hasMethods<T extends object>(...names: readonly (keyof T & string)[]): (given: unknown) => given is T {
  return (given): given is T =>
    typeof given === 'object' && given !== null && names.every((name) => typeof Reflect.get(given, name) === 'function');
}
