/**
 * What is used of budgets, kept in a file over restarts: written every five seconds and at the end, as a whole or not
 * at all. Who is killed loses at most what was used since. Invariant: one process of a machine at a time has the file;
 * one that cannot be read is kept aside, and the budgets begin with what could be read of it.
 */
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { rename, writeFile } from 'node:fs/promises';
import { type Constraint, FlowConfigError } from '../../index.js';
import type { Budgets, SavedBudget } from '../../spending/index.js';
import type { GatewayLog } from './gateway-log.js';

const everyMs = 5_000;
const head = { headgate: 'budgets', version: 1 };
/** Lines that are written before others have their turn: budgets may be a million. */
const linesAtOnce = 1_000;

export interface BudgetState {
  /** From now on the file follows the budgets that `source` names. */
  follow(source: () => Budgets | undefined): BudgetState;
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
  const state: BudgetState = {
    follow(given) {
      source = given;
      source()?.restore(saved, performance.now());
      timer = setInterval(() => {
        writing = writing.then(write);
      }, everyMs).unref();
      return state;
    },
    async stop() {
      clearInterval(timer);
      await writing.then(write);
      rmSync(`${file}.lock`, { force: true });
    },
  };
  return state;
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

/** The budgets of plans. */
export function budgetsIn(constraints: readonly Constraint[]): Budgets | undefined {
  return constraints.find((each): each is Budgets => 'budgetsOf' in each);
}

/** `x-ratelimit-…` as OpenAI has them, of the budget of which least is left. */
export function rateLimitHeaders(budgets: Budgets | undefined, tenant: string): Record<string, string> {
  const all = budgets?.budgetsOf(tenant, performance.now()) ?? [];
  const headers: Record<string, string> = {};
  for (const wanted of ['requests', 'tokens']) {
    const left = ({ limit, used, reserved }: (typeof all)[number]): number => Math.max(limit - used - reserved, 0);
    const [least] = all.filter(({ unit }) => unit === wanted).sort((a, b) => left(a) - left(b));
    if (least === undefined) continue;
    headers[`x-ratelimit-limit-${wanted}`] = String(least.limit);
    headers[`x-ratelimit-remaining-${wanted}`] = String(Math.floor(left(least)));
    headers[`x-ratelimit-reset-${wanted}`] = `${Math.ceil(least.resetsInMs)}ms`;
  }
  return headers;
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
  let pid = 0;
  try {
    pid = Number(readFileSync(lock, 'utf8'));
    // A container leaves a lock behind whose number is that of this very process.
    if (pid > 0 && pid !== process.pid) process.kill(pid, 0);
    else pid = 0;
  } catch (error) {
    if (Object(error).code !== 'EPERM') pid = 0;
  }
  if (pid > 0) throw notOurs(`process ${pid} has it`);
  try {
    writeFileSync(lock, String(process.pid), { mode: 0o600 });
  } catch (error) {
    throw notOurs(String(error));
  }
}
