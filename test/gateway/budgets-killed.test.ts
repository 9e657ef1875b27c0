/** A process that is killed: what was spent up to the last writing of its file is remembered by the next one. */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';
import { expect, it, onTestFinished, vi } from 'vitest';

it('keeps what was written five seconds ago or earlier, and its lock goes to the next process', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'killed-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const state = join(folder, 'budgets');
  const program = join(folder, 'program.mts');
  const source = (path: string): string => JSON.stringify(new URL(`../../src/${path}`, import.meta.url).pathname);
  writeFileSync(
    program,
    `import { budgetState } from ${source('gateway/shared/budget-state.ts')};
     import { budgets } from ${source('spending/index.ts')};
     const quotas = budgets({ budgets: [{ by: 'flow', limits: [{ unit: 'requests', limit: 9, per: 'month' }] }] });
     const state = await budgetState(${JSON.stringify(state)}, () => {});
     state.follow(() => quotas);
     const used = () => quotas.budgetsOf('a', performance.now())[0].used;
     const item = { fairnessId: 'a', request: {}, tokens: 0 };
     process.stdout.write('used ' + used() + '\\n');
     quotas.dispatched({ id: 'e', labels: {} }, performance.now(), { item, usage: {} });
     setInterval(() => {}, 1000);`,
  );
  const bundled = join(folder, 'program.mjs');
  await build({
    entryPoints: [program],
    outfile: bundled,
    bundle: true,
    platform: 'node',
    format: 'esm',
    logLevel: 'silent',
  });
  const start = () => {
    const child = spawn(process.execPath, [bundled], { stdio: ['ignore', 'pipe', 'pipe'] });
    onTestFinished(() => void child.kill('SIGKILL'));
    let text = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (text += chunk));
    return { child, text: () => text };
  };
  const first = start();
  await vi.waitFor(() => expect(readFileSync(state, 'utf8')).toContain('"end":1'), { timeout: 60_000, interval: 100 });
  first.child.kill('SIGKILL');
  await vi.waitFor(() => expect(first.child.signalCode).toBe('SIGKILL'));
  const second = start();
  await vi.waitFor(() => expect(second.text()).toContain('used 1'), { timeout: 60_000, interval: 100 });
}, 30_000);
