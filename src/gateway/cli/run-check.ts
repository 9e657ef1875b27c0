/** `headgate check`: is the file right, and what does it mean? */
import { dirname, resolve } from 'node:path';
import { FlowConfigError, type PluginRegistry } from '../../index.js';
import { importPlugins } from '../index.js';
import type { CheckArguments } from './arguments.js';
import { type CheckResult, checkSource } from './check-source.js';
import { probe } from './probe-upstreams.js';
import { readSource } from './read-source.js';

/** Returns the exit status. */
export async function runCheck({ file, json, probe: asksServers, modules }: CheckArguments): Promise<number> {
  const result = await check(file, modules, asksServers);
  process.stdout.write(json ? `${JSON.stringify(result, finite, 2)}\n` : renderCheck(file, result));
  return result.faults.length === 0 ? 0 : 1;
}

async function check(file: string, modules: readonly string[], asksServers: boolean): Promise<CheckResult> {
  let text: string;
  try {
    text = readSource(file);
  } catch (error) {
    const got = error instanceof Error ? error.message : String(error);
    return faulty([{ path: '', expected: 'a file that can be read', got }]);
  }
  let registry: PluginRegistry;
  try {
    registry = await importPlugins(text, { from: file === '-' ? undefined : dirname(resolve(file)), modules });
  } catch (error) {
    if (error instanceof FlowConfigError) return faulty(error.issues);
    throw error;
  }
  const checked = checkSource(text, registry);
  if (!asksServers || checked.kind !== 'gateway file' || checked.faults.length > 0) return checked;
  return { ...checked, warnings: [...checked.warnings, ...(await probe(text, registry))] };
}

function faulty(faults: CheckResult['faults']): CheckResult {
  return { kind: 'unknown', faults, warnings: [], effective: [] };
}

/** JSON has no Infinity. */
const finite = (_key: string, value: unknown): unknown => (value === Infinity ? 'unlimited' : value);

const columns = 80;

/** The result of a check for people, in 80 columns. */
function renderCheck(file: string, { kind, faults, warnings, effective }: CheckResult): string {
  const lines: string[] = [];
  if (faults.length > 0) {
    lines.push(...wrap(`${file}: ${kind} with ${counted(faults.length, 'fault')}`, ''), '');
    for (const { path, expected, got } of faults) {
      const said = [`  expected ${expected}`, `  got ${got}`].flatMap((line) => wrap(line, '    '));
      lines.push(...wrap(`- ${path || 'the file'}`, '  '), ...said);
    }
    return `${lines.join('\n')}\n`;
  }
  lines.push(...wrap(`${file}: ${kind}, no faults, ${counted(warnings.length, 'warning')}`, ''));
  if (warnings.length > 0) lines.push('', 'Warnings', ...warnings.flatMap((warning) => wrap(`- ${warning}`, '  ')));
  for (const { section, entries } of effective) {
    const width = Math.min(Math.max(0, ...entries.map(([name]) => name.length)), 24);
    const rows = entries.flatMap(([name, text]) => wrap(`  ${name.padEnd(width)}  ${text}`, ' '.repeat(width + 4)));
    lines.push('', section, ...rows);
  }
  return `${lines.join('\n')}\n`;
}

const counted = (count: number, what: string): string =>
  `${count === 0 ? 'no' : count} ${what}${count === 1 ? '' : 's'}`;

/** Breaks at blanks; further lines begin with `indent`. A word longer than a line stands alone. */
function wrap(text: string, indent: string): string[] {
  const lines: string[] = [];
  let rest = text;
  while (rest.length > columns) {
    const limit = rest.lastIndexOf(' ', columns);
    const at = limit > indent.length + 1 ? limit : rest.indexOf(' ', columns);
    if (at < 0) break;
    lines.push(rest.slice(0, at).trimEnd());
    rest = indent + rest.slice(at + 1);
  }
  return [...lines, rest];
}
