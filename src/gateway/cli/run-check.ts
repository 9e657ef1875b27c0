/** `headgate check`: is the file right, and what does it mean? */
import { FlowConfigError } from '../../index.js';
import { type CheckResult, checkSource } from './check-source.js';
import { probe } from './probe.js';
import { readSource } from './read-source.js';
import { renderCheck } from './render-check.js';

/** Returns the exit status. */
export async function runCheck(file: string, json: boolean, asksServers: boolean): Promise<number> {
  const checked = check(file);
  const probes = asksServers && checked.kind === 'gateway file' && checked.faults.length === 0;
  const result = probes ? { ...checked, warnings: [...checked.warnings, ...(await probe(readSource(file)))] } : checked;
  process.stdout.write(json ? `${JSON.stringify(result, finite, 2)}\n` : renderCheck(file, result));
  return result.faults.length === 0 ? 0 : 1;
}

function check(file: string): CheckResult {
  try {
    return checkSource(readSource(file));
  } catch (error) {
    if (error instanceof FlowConfigError) throw error;
    const fault = { path: '', expected: 'a file that can be read', got: error instanceof Error ? error.message : String(error) };
    return { kind: 'unknown', faults: [fault], warnings: [], effective: [] };
  }
}

/** JSON has no Infinity. */
function finite(_key: string, value: unknown): unknown {
  return value === Number.POSITIVE_INFINITY ? 'unlimited' : value;
}
