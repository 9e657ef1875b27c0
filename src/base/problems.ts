/** Everything that is wrong with what is read, gathered, so that one error can tell it all. */
import { type ConfigIssue, FlowConfigError } from './faults/flow-config-error.js';
import * as s from './schema/schema.js';

export class Problems {
  readonly warnings: string[] = [];
  readonly issues: ConfigIssue[] = [];

  /** Returns undefined, for those who have nothing else to return then. */
  add(path: string, expected: string, got: string): undefined {
    this.issues.push({ path, expected, got });
  }

  warn(where: string, what: string): void {
    this.warnings.push(`${where}${what}`);
  }

  /** The value as `schema` reads it; undefined when it has problems, which are noted with paths below `at`. */
  check<T>(schema: s.Schema<T>, value: unknown, at = ''): T | undefined {
    const verdict = s.validate(schema, value, at);
    if (verdict.ok) return verdict.value;
    this.issues.push(...verdict.issues);
    return undefined;
  }

  /** What `read` returns; undefined when it throws a FlowConfigError: its issues are noted, at `pathOf` of theirs. */
  during<T>(read: () => T, pathOf = (path: string): string => path): T | undefined {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof FlowConfigError)) throw error;
      this.issues.push(...error.issues.map((issue) => ({ ...issue, path: pathOf(issue.path) })));
      return undefined;
    }
  }

  /** `add`, for what is an issue already. */
  readonly sink = (issue: ConfigIssue): undefined => void this.issues.push(issue);

  get hasIssues(): boolean {
    return this.issues.length > 0;
  }

  toError(subject: string): FlowConfigError {
    return new FlowConfigError(subject, this.issues);
  }
}
