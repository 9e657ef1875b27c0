/** Paths of values: what stands there, and how messages show them. */
export function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  let here = value;
  for (const key of path) {
    if (typeof here !== 'object' || here === null) return undefined;
    here = Reflect.get(here, key);
  }
  return here;
}

/** `bands[1].limits.maxRequests` */
export function joinPath(start: string, path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, key) => below(text, segment(key)), start);
}

function segment(key: PropertyKey): string {
  if (typeof key === 'string') return /^[\w$-]+$/.test(key) ? key : `[${JSON.stringify(key)}]`;
  return `[${String(key)}]`;
}

/** `path`, which is relative to `start`, from the top. A start that ends with a space is a heading, not a path. */
export function below(start: string, path: string): string {
  const joint = start === '' || path === '' || start.endsWith(' ') || path.startsWith('[') ? '' : '.';
  return start + joint + path;
}
