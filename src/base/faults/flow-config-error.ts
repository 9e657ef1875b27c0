/** The error for configuration and calls that cannot be right. */

/** One thing that is wrong. */
export interface ConfigIssue {
  /** The path of the value, e.g. `bands[1].limits.maxRequests`; empty for the whole. */
  readonly path: string;
  /** The description of a right value, e.g. `an integer from 0 up`. */
  readonly expected: string;
  /** The value that was given, as text with its type, e.g. `"-5" (string)`. */
  readonly got: string;
}

const brand = Symbol.for('headgate.FlowConfigError');

/** Thrown for wrong options and wrong arguments; lists every issue, and nothing has been changed by the call. */
export class FlowConfigError extends TypeError {
  override readonly name = 'FlowConfigError';
  readonly code = 'ERR_FLOW_CONFIG';
  readonly issues: readonly ConfigIssue[];

  constructor(subject: string, issues: readonly ConfigIssue[]) {
    const lines = issues.map(({ path, expected, got }) => `${path && `${path}: `}expected ${expected}; got ${got}`);
    const told = lines.length === 1 ? lines[0] : `${lines.length} problems\n  ${lines.join('\n  ')}`;
    super(`${subject}: ${told}`);
    this.issues = issues;
    Object.defineProperty(this, brand, { value: true });
  }

  /** True across the ESM and the CommonJS copy of the package. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === 'object' && value !== null && brand in value;
  }
}

/** The error of one thing that is wrong. */
export function configError(subject: string, path: string, expected: string, got: string): FlowConfigError {
  return new FlowConfigError(subject, [{ path, expected, got }]);
}

/** A value as an error message shows it: short, with its type, and without what URLs keep secret. Never throws. */
export function describeValue(value: unknown): string {
  try {
    return describe(value);
  } catch {
    return `a value that cannot be read (${typeof value})`;
  }
}

function describe(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (value === null) return 'null';
  if (typeof value === 'string') return `${JSON.stringify(shown(value))} (string)`;
  if (typeof value === 'function') return `a function`;
  if (Array.isArray(value)) return `an array of ${value.length}`;
  if (typeof value === 'object') return `an object with keys ${Object.keys(value).slice(0, 8).join(', ') || '(none)'}`;
  return `${String(value)} (${typeof value})`;
}

/** Of URLs: a word with a name or a password, or a query. Linear time, because clients may send the text. */
const secret = /^[^:]*:[^@]*@|^[^/]*\/[^?]*\?/;

/** The beginning and the rest of its last word: the sign that a word holds a key may stand far behind. */
const beginning = /^.{0,80}\S*/s;

/** Nothing is shown from a word on that may hold a key. */
function shown(value: string): string {
  const words = beginning.exec(value)?.[0].split(/(?<=\s)/) ?? [];
  const at = words.findIndex((word) => secret.test(word));
  const text = at < 0 ? value : `${words.slice(0, at).join('')}***`;
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}
