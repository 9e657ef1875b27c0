/** The file of budgets on a disk that hangs, is full, or has a file that is too large: real files, FIFOs and devices. */
import { execFileSync } from 'node:child_process';
import { createReadStream, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { type BudgetState, budgetState } from '../../../src/gateway/shared/budget-state.js';
import type { LogFields } from '../../../src/gateway/shared/gateway-log.js';
import type { SavedBudget } from '../../../src/spending/index.js';
import { type Budgets, budgets } from '../../../src/spending/index.js';
import { until } from '../../integration/support/until.js';

interface Kept {
  readonly state: BudgetState;
  readonly file: string;
  readonly quotas: Budgets;
  readonly told: { readonly level: string; readonly fields: LogFields | undefined }[];
  /** How often the budgets were read to be written. */
  readonly writes: () => number;
  /** A request that takes from the budget. */
  spend(): void;
}

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), 'budget-state-'));
  onTestFinished(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

/** Written when the test says so: intervals alone are not those of the clock. */
async function keep(file: string): Promise<Kept> {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  const told: Kept['told'] = [];
  const quotas = budgets({ budgets: [{ by: 'flow', limits: [{ unit: 'requests', limit: 9, per: 'month' }] }] });
  const state = await budgetState(file, (level, _event, fields) => void told.push({ level, fields }));
  let writes = 0;
  state.follow(() => {
    writes++;
    return quotas;
  });
  writes = 0;
  const item = { fairnessId: 'a', request: {}, tokens: 0 };
  const endpoint = { id: 'e', labels: {} };
  const spend = (): void => {
    const seat = { item, usage: { promptTokens: 0, completionTokens: 0 } };
    (quotas as unknown as { dispatched(...of: unknown[]): void }).dispatched(endpoint, performance.now(), seat);
  };
  return { state, file, quotas, told, writes: () => writes, spend };
}

const fiveSeconds = (): void => void vi.advanceTimersByTime(5_000);
const spentIn = (file: string): SavedBudget[] =>
  readFileSync(file, 'utf8')
    .split('\n')
    .slice(1, -2)
    .map((line) => JSON.parse(line));

describe('a full disk', () => {
  it('is told once, where and why, the old file stays whole, and what was spent is written when there is room', async () => {
    const { state, file, told, spend } = await keep(join(folder(), 'budgets'));
    spend();
    fiveSeconds();
    await until('the first writing', () => existsSync(file));
    const before = readFileSync(file, 'utf8');
    expect(spentIn(file)).toMatchObject([[expect.any(String), 1, expect.any(Number)]]);

    symlinkSync('/dev/full', `${file}.next`);
    spend();
    fiveSeconds();
    await until('the fault is told', () => told.length > 0);
    for (let times = 0; times < 3; times++) {
      fiveSeconds();
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    expect(told).toEqual([
      {
        level: 'error',
        fields: {
          message: `budgets are not saved in ${file}, which has what was used before`,
          error: expect.stringContaining('ENOSPC'),
        },
      },
    ]);
    expect(readFileSync(file, 'utf8')).toBe(before);

    rmSync(`${file}.next`);
    fiveSeconds();
    await until('the end is told', () => told.length > 1);
    expect(told[1]).toEqual({
      level: 'info',
      fields: { message: `budgets are saved in ${file} again`, error: undefined },
    });
    expect(spentIn(file)[0]?.[1]).toBe(2);
    await state.stop();
  });

  it('at the end is told, and the file is left to others', async () => {
    const { state, file, told } = await keep(join(folder(), 'budgets'));
    symlinkSync('/dev/full', `${file}.next`);
    await state.stop();
    expect(told).toHaveLength(1);
    expect(existsSync(`${file}.lock`)).toBe(false);
  });
});

describe('a disk that hangs', () => {
  /** Nothing is written before somebody reads. */
  async function hanging(): Promise<Kept & { readonly goOn: () => void }> {
    const kept = await keep(join(folder(), 'budgets'));
    execFileSync('mkfifo', [`${kept.file}.next`]);
    // A blocked thread would keep the process: each test reads in the end.
    const goOn = (): void =>
      void createReadStream(`${kept.file}.next`)
        .on('error', () => {})
        .resume();
    return { ...kept, goOn };
  }

  it('has one writing at a time, none waits in a row, and budgets go on meanwhile', async () => {
    const { state, file, quotas, told, writes, spend, goOn } = await hanging();
    for (let times = 0; times < 100; times++) {
      fiveSeconds();
      spend();
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(writes()).toBe(1);
    expect([...quotas.saved(performance.now())][0]?.[1]).toBe(100);
    goOn();
    // A FIFO cannot be flushed to a disk, so this one writing fails, and the next goes to a file.
    await until('the writing ends', () => told.length > 0);
    rmSync(`${file}.next`, { force: true });
    fiveSeconds();
    await until('the next writing', () => existsSync(file));
    expect(writes()).toBe(2);
    await state.stop();
    expect(writes()).toBe(3);
    expect(spentIn(file)[0]?.[1]).toBe(100);
  });

  it('does not keep a gateway from its end for more than ten seconds, and the file stays its own', async () => {
    const { state, file, told, goOn } = await hanging();
    const startedAtMs = performance.now();
    await state.stop();
    expect(performance.now() - startedAtMs).toBeGreaterThanOrEqual(9_990);
    expect(told.map(({ fields }) => fields?.message)).toEqual([
      `budgets are not saved: ${file} took longer than 10000 ms`,
    ]);
    expect(readFileSync(`${file}.lock`, 'utf8')).toBe(String(process.pid));
    goOn();
    await until('the thread is free', () => !existsSync(`${file}.lock`));
  }, 30_000);
});

describe('a file of a million tenants', () => {
  const line = (index: number): string =>
    `["tenant ${index} ${'x'.repeat(160)} requests month UTC",1,${Date.now() + 9e8}]`;

  it('of 200 MB is read whole', async () => {
    const file = join(folder(), 'budgets');
    writeFileSync(file, '{"headgate":"budgets","version":1}\n');
    for (let part = 0; part < 10; part++) {
      const lines = Array.from({ length: 100_000 }, (_, index) => line(part * 100_000 + index));
      writeFileSync(file, `${lines.join('\n')}\n`, { flag: 'a' });
    }
    writeFileSync(file, '{"end":1000000}\n', { flag: 'a' });
    const { state, quotas, told } = await keep(file);
    expect(told).toEqual([]);
    expect([...quotas.saved(performance.now())]).toHaveLength(1_000_000);
    await state.stop();
    expect(readFileSync(file, 'latin1').slice(-16)).toBe('{"end":1000000}\n');
  }, 120_000);

  it('beyond 256 MiB begins with what was read, is told, and is kept aside', async () => {
    const file = join(folder(), 'budgets');
    writeFileSync(file, `{"headgate":"budgets","version":1}\n${line(1)}\n`);
    const blank = Buffer.alloc(2 ** 24, ' ');
    for (let part = 0; part < 17; part++) writeFileSync(file, blank, { flag: 'a' });
    writeFileSync(file, `\n${line(2)}\n{"end":2}\n`, { flag: 'a' });
    const { state, quotas, told } = await keep(file);
    expect([...quotas.saved(performance.now())]).toHaveLength(1);
    expect(told.map(({ fields }) => fields?.message)).toEqual([
      `${file} cannot be read whole, and is now ${file}.bad; it is longer than 256 MiB: 1 of it count`,
    ]);
    await state.stop();
  }, 60_000);
});
