/**
 * The command, three times, in processes of their own, behind one limit: the store is killed under load and comes back
 * empty.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { bundleCli, type CliProcess } from '../../gateway/support/bundled-cli.js';
import { fileOf } from '../../gateway/support/gateway.js';
import { serve, startUpstream } from '../../gateway/support/upstream.js';
import { Store, storeKinds } from '../support/stores.js';
import { until } from '../support/with-store.js';

const limit = 9;
const gateways = 3;
const clientsOfEach = 8;
/** Longer than any test: what a gateway has is kept for it, however slow the machine. */
const sharedState = {
  pool: 'chat',
  maxConcurrency: limit,
  replicas: gateways,
  refreshInterval: '200ms',
  leaseDuration: '1500ms',
  callTimeout: '500ms',
  drainDuration: '10m',
};
const chat = JSON.stringify({ model: 'llama', messages: [{ role: 'user', content: 'hello' }], stream: true });
const patientMs = 120_000;

let cli: Awaited<ReturnType<typeof bundleCli>>;
let folder: string;
beforeAll(async () => {
  cli = await bundleCli();
  folder = mkdtempSync(join(tmpdir(), 'headgate-shared-'));
});
afterAll(() => {
  cli.remove();
  rmSync(folder, { recursive: true, force: true });
});

/** Answers for every request after a while, and counts those that it has at any moment. */
async function countingServer() {
  const count = { now: 0, most: 0 };
  const { url } = await startUpstream((received, index) => {
    count.now++;
    count.most = Math.max(count.most, count.now);
    setTimeout(
      () => {
        count.now--;
        serve(received, index);
      },
      20 + (index % 7) * 10,
    );
  });
  return { url, count };
}

function isExpired(running: CliProcess): boolean {
  return running.events('lease-expired').length > running.events('lease-recovered').length;
}

type Phase = 'start' | 'before' | 'without the store' | 'after';

function percentiles(values: readonly number[]): string {
  const sorted = [...values].sort((a, b) => a - b);
  return [0.5, 0.9, 0.99]
    .map((share) => `${Math.round(sorted[Math.floor(sorted.length * share)] ?? Number.NaN)} ms`)
    .join(' / ');
}

describe.runIf(storeKinds.length > 0).each(storeKinds)(
  'three gateways in processes of their own, with $name',
  (kind) => {
    it('keep one limit, and fail no request, while the store is killed and comes back empty', async () => {
      const store = await Store.start(kind);
      onTestFinished(() => store.stop());
      const { url, count } = await countingServer();
      const file = join(folder, `${kind.name}.json`);
      writeFileSync(
        file,
        JSON.stringify({
          ...fileOf([url], { sharedState: { url: store.url, ...sharedState }, log: { format: 'json' } }, 1_000),
        }),
      );
      const running = Array.from({ length: gateways }, () => cli.start(['gateway', '--config', file]));
      const heard = (): unknown => running.map(({ stderr }) => stderr.slice(-2_000));
      const whole = (isTrue: (one: CliProcess) => boolean): Promise<void> =>
        until(() => running.every(isTrue), heard, patientMs);
      await whole((one) => one.events('listening').length > 0);

      let phase: Phase = 'start';
      const firstTokensMs: Record<Phase, number[]> = { start: [], before: [], 'without the store': [], after: [] };
      const failures: unknown[] = [];
      let isOver = false;
      async function client(address: string): Promise<void> {
        while (!isOver) {
          const [began, sentAtMs] = [phase, performance.now()];
          try {
            const response = await fetch(`${address}/v1/chat/completions`, {
              method: 'POST',
              body: chat,
              headers: { 'content-type': 'application/json' },
            });
            firstTokensMs[began].push(performance.now() - sentAtMs);
            if (response.status !== 200) failures.push(response.status);
            await response.text();
          } catch (error) {
            failures.push(String(error));
          }
        }
      }
      const clients = running.flatMap((one) =>
        Array.from({ length: clientsOfEach }, () => client(String(one.events('listening')[0]!.url))),
      );
      const answered = (requests: number): Promise<void> =>
        until(() => firstTokensMs[phase].length >= requests, heard, patientMs);

      // A store that knows nothing learns for one lease.
      await answered(200);
      phase = 'before';
      await answered(200);
      phase = 'without the store';
      await store.kill();
      await whole(isExpired);
      // The safe shares keep serving when the lease is over.
      await answered(firstTokensMs[phase].length + 100);
      const upAtMs = performance.now();
      await store.up();
      phase = 'after';
      await whole((one) => !isExpired(one));
      const backMs = performance.now() - upAtMs;
      await answered(firstTokensMs[phase].length + 200);
      isOver = true;
      await Promise.all(clients);

      expect(failures).toEqual([]);
      expect(count.most).toBeLessThanOrEqual(limit);
      const shown = Object.entries(firstTokensMs).map(([name, values]) => `${name} ${percentiles(values)}`);
      console.log(
        `TTFT p50/p90/p99 with ${kind.name}: ${shown.join(', ')}; leases answered again after ${Math.round(backMs)} ms`,
      );
    });
  },
);
