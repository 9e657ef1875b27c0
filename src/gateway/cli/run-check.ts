/** `headgate check`: is the file right, and what does it mean? */
import { dirname, resolve } from 'node:path';
import { FlowConfigError, type PluginRegistry } from '../../index.js';
import { importPlugins } from '../index.js';
import type { CheckArguments } from './arguments.js';
import { type CheckResult, checkSource } from './check-source.js';
import { probe } from './probe-upstreams.js';
import { readSource } from './read-source.js';
import { renderCheck } from './render-check.js';

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
    return faulty([
      { path: '', expected: 'a file that can be read', got: error instanceof Error ? error.message : String(error) },
    ]);
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
function finite(_key: string, value: unknown): unknown {
  return value === Number.POSITIVE_INFINITY ? 'unlimited' : value;
}
