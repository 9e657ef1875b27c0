/**
 * What is used of budgets, kept in a file over restarts: written every five seconds and at the end, as a whole or not
 * at all. Who is killed loses at most what was used since. Invariant: one process of a machine at a time has the file;
 * one that cannot be read is kept aside, and the budgets begin with what could be read of it.
 */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { open, rename, rm, writeFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { parseJson } from '../../base/stream/content-pieces.js';
import { FlowConfigError } from '../../index.js';
import type { Budgets, SavedBudget } from '../../spending/index.js';
import type { GatewayLog } from './gateway-log.js';

const everyMs = 5_000;
const head = { headgate: 'budgets', version: 1 };
/** Lines that are written before others have their turn: budgets may be a million. */
const linesAtOnce = 1_000;
/** So much of a file is read: a million budgets of long names, which take 400 MB of memory. */
const mostBytes = 2 ** 28;
/** A disk that takes longer, ms, does not keep the process from its end. */
const longestEndMs = 10_000;

export interface BudgetState {
  /** From now on the file follows the budgets that `source` names. */
  follow(source: () => Budgets | undefined): void;
  /** Writes for the last time, and leaves the file to others. Never rejects. */
  stop(): Promise<void>;
}

/** @throws (rejects) FlowConfigError when another process has the file, or it cannot be written */
export async function budgetState(file: string, log: GatewayLog): Promise<BudgetState> {
  takeLock(`${file}.lock`);
  const saved = await savedIn(file, log);
  let source = (): Budgets | undefined => undefined;
  let timer: NodeJS.Timeout | undefined;
  let writing: Promise<void> | undefined;
  let isFailing = false;
  const tell = (fails: boolean, message: string, error?: string): void => {
    if (fails !== isFailing) log(fails ? 'error' : 'info', 'budget-state', { message, error });
    isFailing = fails;
  };
  async function write(): Promise<void> {
    try {
      const lines = linesOf(source()?.saved(performance.now()) ?? []);
      await writeFile(`${file}.next`, lines, { mode: 0o600, flush: true });
      await rename(`${file}.next`, file);
      tell(false, `budgets are saved in ${file} again`);
    } catch (error) {
      tell(true, `budgets are not saved in ${file}, which has what was used before`, String(error));
    }
    writing = undefined;
  }
  return {
    follow(given) {
      source = given;
      source()?.restore(saved, performance.now());
      timer = setInterval(() => {
        writing ??= write();
      }, everyMs).unref();
    },
    async stop() {
      clearInterval(timer);
      const last = (writing ?? Promise.resolve()).then(write).then(() => rm(`${file}.lock`, { force: true }));
      const isLate = await Promise.race([last.catch(() => {}), pause(longestEndMs, true, { ref: false })]);
      if (isLate === true) tell(true, `budgets are not saved: ${file} took longer than ${longestEndMs} ms`);
    },
  };
}

/** What the file has. */
async function savedIn(file: string, log: GatewayLog): Promise<readonly SavedBudget[]> {
  const saved: SavedBudget[] = [];
  let [first, isWhole, size]: [unknown, boolean, number] = [undefined, false, 0];
  try {
    const handle = await open(file);
    size = (await handle.stat()).size;
    for await (const text of handle.readLines({ end: mostBytes })) {
      const line = parseJson(text);
      first ??= Object(line);
      if (isSaved(line)) saved.push(line);
      else isWhole ||= Object(line).end === saved.length;
    }
  } catch (error) {
    if (Object(error).code === 'ENOENT') return [];
    throw notOurs(String(error));
  }
  const { headgate, version = 'unknown' } = Object(first);
  const isOurs = headgate === head.headgate && version === head.version;
  if (isOurs && isWhole) return saved;
  await rename(file, `${file}.bad`);
  const cut = size > mostBytes ? 'it is longer than 256 MiB' : 'it is cut';
  const what = isOurs ? `${cut}: ${saved.length} of it count` : `its version is ${version}: budgets begin anew`;
  log('error', 'budget-state', { message: `${file} cannot be read whole, and is now ${file}.bad; ${what}` });
  return isOurs ? saved : [];
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
