/** Checks of options without the core and its schema library, which a browser would have to download for them. */
import type { ConfigIssue, FlowConfigError } from '../index.js';

/** What an option must be, in words and as a test. */
export type Expectation = readonly [expected: string, isValid: (value: unknown) => boolean];

/**
 * Checks every option that is given; `undefined` stands for the default where there is one, and fails where the test says so.
 * @throws FlowConfigError that lists every problem.
 */
export function check(subject: string, options: object, expectations: Readonly<Record<string, Expectation>>): void {
  const names = Object.keys(expectations);
  const unknown = Object.keys(options).filter((path) => !names.includes(path));
  const wrong = names.filter((path) => expectations[path]?.[1](Reflect.get(options, path)) === false);
  const issues = [
    ...unknown.map((path) => ({ path, expected: `one of the keys ${names.join(', ')}`, got: 'an unknown key' })),
    ...wrong.map((path) => ({ path, expected: expectations[path]?.[0] ?? '', got: describe(Reflect.get(options, path)) })),
  ];
  if (issues.length > 0) throw configError(subject, issues);
}

/** The same expectation for an option with a default. */
export function optional([expected, isValid]: Expectation): Expectation {
  return [expected, (value) => value === undefined || isValid(value)];
}

export function isAboveZero(value: unknown): boolean {
  return typeof value === 'number' && value > 0;
}

export function isAtLeastZero(value: unknown): boolean {
  return typeof value === 'number' && value >= 0;
}

export function isFunction(value: unknown): boolean {
  return typeof value === 'function';
}

/** Whether every one of these members is a function. */
export function hasMethods(value: unknown, ...names: readonly string[]): boolean {
  return typeof value === 'object' && value !== null && names.every((name) => isFunction(Reflect.get(value, name)));
}

/** A FlowConfigError in all but its class, which is in the core: `instanceof` goes by the brand. */
function configError(subject: string, issues: readonly ConfigIssue[]): FlowConfigError {
  const lines = issues.map(({ path, expected, got }) => `${path}: expected ${expected}; got ${got}`);
  const problems = lines.length === 1 ? `: ${lines[0]}` : `: ${lines.length} problems\n  ${lines.join('\n  ')}`;
  const error = Object.assign(new TypeError(subject + problems), { name: 'FlowConfigError', code: 'ERR_FLOW_CONFIG', issues } as const);
  return Object.defineProperty(error, Symbol.for('headgate.FlowConfigError'), { value: true });
}

function describe(value: unknown): string {
  if (value === undefined) return 'nothing';
  return typeof value === 'string' ? `${JSON.stringify(value)} (string)` : `${String(value)} (${typeof value})`;
}
