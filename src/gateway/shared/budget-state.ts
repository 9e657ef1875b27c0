/**
 * What is used of budgets, kept in a file over restarts: written every five seconds and at the end, as a whole or not
 * at all. Who is killed loses at most what was used since. Invariant: one process of a machine at a time has the file;
 * one that cannot be read is kept aside, and the budgets begin with what could be read of it.
 */
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { rename, writeFile } from 'node:fs/promises';
import { FlowConfigError } from '../../index.js';
import type { Budgets, SavedBudget } from '../../spending/index.js';
import type { GatewayLog } from './gateway-log.js';

const everyMs = 5_000;
const head = { headgate: 'budgets', version: 1 };
/** Lines that are written before others have their turn: budgets may be a million. */
const linesAtOnce = 1_000;

export interface BudgetState {
  /** From now on the file follows the budgets that `source` names. */
  follow(source: () => Budgets | undefined): void;
  /** Writes for the last time, and leaves the file to others. Never rejects. */
  stop(): Promise<void>;
}

/** @throws FlowConfigError when another process has the file, or it cannot be written */
export function budgetState(file: string, log: GatewayLog): BudgetState {
  takeLock(`${file}.lock`);
  const saved = savedIn(file, log);
  let source = (): Budgets | undefined => undefined;
  let timer: NodeJS.Timeout | undefined;
  let writing = Promise.resolve();
  async function write(): Promise<void> {
    try {
      const lines = linesOf(source()?.saved(performance.now()) ?? []);
      await writeFile(`${file}.next`, lines, { mode: 0o600, flush: true });
      await rename(`${file}.next`, file);
    } catch (error) {
      log('error', 'budget-state', { message: 'budgets were not saved', error: String(error) });
    }
  }
  return {
    follow(given) {
      source = given;
      source()?.restore(saved, performance.now());
      timer = setInterval(() => {
        writing = writing.then(write);
      }, everyMs).unref();
    },
    async stop() {
      clearInterval(timer);
      await writing.then(write);
      rmSync(`${file}.lock`, { force: true });
    },
  };
}

/** What the file has. */
function savedIn(file: string, log: GatewayLog): readonly SavedBudget[] {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if (Object(error).code === 'ENOENT') return [];
    throw notOurs(String(error));
  }
  const [first, ...rest] = text.split('\n').map(parsed);
  const { headgate, version = 'unknown' } = Object(first);
  const isOurs = headgate === head.headgate && version === head.version;
  const saved = isOurs ? rest.filter(isSaved) : [];
  if (isOurs && rest.some((line) => Object(line).end === saved.length)) return saved;
  renameSync(file, `${file}.bad`);
  const what = isOurs ? `it is cut: ${saved.length} of it count` : `its version is ${version}: budgets begin anew`;
  log('error', 'budget-state', { message: `${file} cannot be read whole, and is now ${file}.bad; ${what}` });
  return saved;
}

function* linesOf(saved: Iterable<SavedBudget>): Generator<string, void> {
  let lines = [JSON.stringify(head)];
  let count = 0;
  for (const each of saved) {
    count++;
    if (lines.push(JSON.stringify(each)) < linesAtOnce) continue;
    yield `${lines.join('\n')}\n`;
    lines = [];
  }
  yield `${[...lines, JSON.stringify({ end: count })].join('\n')}\n`;
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

function isSaved(line: unknown): line is SavedBudget {
  if (!Array.isArray(line) || line.length !== 3) return false;
  const [key, used, freeAtMs] = line;
  return typeof key === 'string' && used >= 0 && Number.isFinite(used) && Number.isFinite(freeAtMs);
}

function notOurs(got: string): FlowConfigError {
  const expected = 'a file that this process alone writes';
  return new FlowConfigError('gateway', [{ path: 'budgets.file', expected, got }]);
}

/** @throws FlowConfigError while another process of this machine has it */
function takeLock(lock: string): void {
  try {
    writeFileSync(lock, String(process.pid), { mode: 0o600, flag: 'wx' });
  } catch (error) {
    if (Object(error).code !== 'EEXIST') throw notOurs(String(error));
    const pid = Number(readFileSync(lock, 'utf8'));
    // A container leaves a lock behind whose number is that of this very process.
    if (pid !== process.pid && isRunning(pid)) throw notOurs(`process ${pid} has it`);
    rmSync(lock, { force: true });
    takeLock(lock);
  }
}

function isRunning(pid: number): boolean {
  try {
    return pid > 0 && process.kill(pid, 0);
  } catch (error) {
    return Object(error).code === 'EPERM';
  }
}
