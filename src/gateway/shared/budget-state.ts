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

type Source = () => Budgets | undefined;

export class BudgetState {
  private readonly file: string;
  private readonly log: GatewayLog;
  /** What the file had. */
  private readonly saved: readonly SavedBudget[];
  private source: Source = () => undefined;
  private timer: NodeJS.Timeout | undefined;
  private writing: Promise<void> = Promise.resolve();

  /** @throws FlowConfigError when another process has the file, or it cannot be written */
  constructor(file: string, log: GatewayLog) {
    this.file = file;
    this.log = log;
    takeLock(`${file}.lock`);
    this.saved = this.read();
  }

  /** From now on the file follows the budgets that `source` names. */
  follow(source: Source): this {
    this.source = source;
    source()?.restore(this.saved, performance.now());
    this.timer = setInterval(() => {
      this.writing = this.writing.then(() => this.write());
    }, everyMs).unref();
    return this;
  }

  /** Writes for the last time, and leaves the file to others. Never rejects. */
  async stop(): Promise<void> {
    clearInterval(this.timer);
    await this.writing;
    await this.write();
    rmSync(`${this.file}.lock`, { force: true });
  }

  private async write(): Promise<void> {
    try {
      const lines = linesOf(this.source()?.saved(performance.now()) ?? []);
      await writeFile(`${this.file}.next`, lines, { mode: 0o600, flush: true });
      await rename(`${this.file}.next`, this.file);
    } catch (error) {
      this.log('error', 'budget-state', { message: 'budgets were not saved', error: String(error) });
    }
  }

  private read(): readonly SavedBudget[] {
    let text: string;
    try {
      text = readFileSync(this.file, 'utf8');
    } catch (error) {
      if (Object(error).code === 'ENOENT') return [];
      throw notOurs(String(error));
    }
    const [first, ...rest] = text.split('\n').map(parsed);
    const { headgate, version = 'unknown' } = Object(first);
    const isOurs = headgate === head.headgate && version === head.version;
    const saved = isOurs ? rest.filter(isSaved) : [];
    if (isOurs && rest.some((line) => Object(line).end === saved.length)) return saved;
    renameSync(this.file, `${this.file}.bad`);
    const what = isOurs ? `it is cut: ${saved.length} of it count` : `its version is ${version}: budgets begin anew`;
    const message = `${this.file} cannot be read whole, and is now ${this.file}.bad; ${what}`;
    this.log('error', 'budget-state', { message });
    return saved;
  }
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
