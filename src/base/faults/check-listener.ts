/** The arguments of `on`: an emitter without this check would take the name of an event that never comes. */
import { expectedWord } from './did-you-mean.js';
import { type ConfigIssue, describeValue, FlowConfigError } from './flow-config-error.js';

/** @throws FlowConfigError when there is no such event, or the listener is no function */
export function checkListener(event: string, listener: unknown, events: readonly string[]): void {
  const issues: ConfigIssue[] = [];
  if (!events.includes(event))
    issues.push({ path: 'event', expected: expectedWord(event, events), got: describeValue(event) });
  if (typeof listener !== 'function')
    issues.push({ path: 'listener', expected: 'a function', got: describeValue(listener) });
  if (issues.length > 0) throw new FlowConfigError('on', issues);
}
