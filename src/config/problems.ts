/** Everything that is wrong with a configuration, gathered while it is read, so that one error can tell it all. */
import { validate } from '../base/schema/element.js';
import { type ConfigIssue, FlowConfigError, type Schema } from '../index.js';

export class Problems {
  readonly warnings: string[] = [];
  private readonly issues: ConfigIssue[] = [];

  add(...issues: readonly ConfigIssue[]): void {
    this.issues.push(...issues);
  }

  warn(where: string, what: string): void {
    this.warnings.push(`${where}${what}`);
  }

  /** The value as `schema` reads it; undefined when it has problems, which are noted with paths below `at`. */
  check<T>(schema: Schema<T>, value: unknown, at: string): T | undefined {
    const verdict = validate(schema, value, at);
    if (verdict.ok) return verdict.value;
    this.add(...verdict.issues);
    return undefined;
  }

  /** `add`, to be passed on. */
  readonly sink = (issue: ConfigIssue): void => this.add(issue);

  get hasIssues(): boolean {
    return this.issues.length > 0;
  }

  toError(): FlowConfigError {
    return new FlowConfigError('configuration', this.issues);
  }
}
