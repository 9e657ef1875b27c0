/** One value of a scenario replaced by another: what `--sweep` and `--find` try. */
import { FlowConfigError } from '../../index.js';
import { anyText, checkArguments, fields } from '../check-arguments.js';
import { parsePath, type ValuePath, valueAt, withValue } from '../scenario/value-path.js';

/**
 * The scenario file with another value at `path`: `servers[0].slots`, `traffic[acme].arrivals.rate`, entries of lists
 * by index, name, tenant, type or priority. `gate.NAME` is the parameter of that name of the saturation detector.
 * @throws FlowConfigError when the path leads nowhere
 */
export function withScenarioValue(
  source: Readonly<Record<string, unknown>>,
  path: string,
  value: unknown,
): Record<string, unknown> {
  checkArguments('withScenarioValue', { source, path }, { source: fields, path: anyText });
  const parts = resolvePath(source, path);
  const changed = parts && withValue(source, parts, value);
  if (changed !== undefined) return changed as Record<string, unknown>;
  const expected = 'a path in the scenario such as servers[0].slots or gate.maxConcurrency';
  throw new FlowConfigError('path', [{ path, expected, got: 'a path that leads nowhere' }]);
}

/** The value that stands there now, if any. @throws FlowConfigError */
export function scenarioValue(source: Readonly<Record<string, unknown>>, path: string): unknown {
  checkArguments('scenarioValue', { source, path }, { source: fields, path: anyText });
  const parts = resolvePath(source, path);
  return parts && valueAt(source, parts);
}

function resolvePath(source: Readonly<Record<string, unknown>>, path: string): ValuePath | undefined {
  const parts = parsePath(path);
  if (parts?.[0] !== 'gate' || parts.length < 2) return parts;
  const detector =
    valueAt(source, ['flowControl', 'saturationDetector', 'pluginRef']) ??
    valueAt(source, ['saturationDetector', 'pluginRef']);
  return detector === undefined ? undefined : ['plugins', String(detector), 'parameters', ...parts.slice(1)];
}
