/** Workers of one machine behind a limit of many: one connection to the store, and seats of the dead are free at once. */
import { writeFileSync } from 'node:fs';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { bundleCli } from '../../gateway/support/bundled-cli.js';
import { countingServer } from '../../gateway/support/counting-server.js';
import { fileOf } from '../../gateway/support/gateway.js';
import { Store, storeKinds } from '../support/stores.js';
import { until } from '../support/with-store.js';

const limit = 6;
const patientMs = 120_000;

let cli: Awaited<ReturnType<typeof bundleCli>>;
beforeAll(async () => {
  cli = await bundleCli();
});
afterAll(() => cli.remove());

describe.runIf(storeKinds.length > 0).each(storeKinds)('workers and a limit in $name', (kind) => {
  it('keep it by one connection, whose end and whose errors all hear of', { timeout: 2 * patientMs }, async () => {
    const store = await Store.start(kind);
    onTestFinished(() => store.stop());
    const seen = await countingServer();
    const { url } = seen;
    // Seats of a worker that were not known to be free would stay reserved for longer than the test.
    const sharedState = {
      url: store.url,
      pool: 'chat',
      maxConcurrency: limit,
      replicas: 1,
      replica: 'east',
      refreshInterval: '200ms',
      leaseDuration: '1500ms',
      callTimeout: '500ms',
      drainDuration: '10m',
    };
    const file = `${cli.folder}/shared.json`;
    writeFileSync(file, JSON.stringify(fileOf([url], { sharedState, log: { format: 'json', requests: false } }, 100)));
    const running = cli.start(['gateway', '--config', file, '--workers', '2']);
    const heard = (): unknown => [seen, running.stderr.slice(-3_000)];
    const holds = (isTrue: () => boolean): Promise<void> => until(isTrue, heard, patientMs);
    await holds(() => running.events('listening').length === 1);
    const { url: address } = running.events('listening')[0]!;
    let isOver = false;
    async function client(): Promise<void> {
      while (!isOver) {
        const options = { method: 'POST', body: '{"model":"m","messages":[]}', signal: AbortSignal.timeout(10_000) };
        const headers = { 'content-type': 'application/json', connection: 'close' };
        await fetch(`${address}/v1/chat/completions`, { ...options, headers }).then(
          (response) => response.text(),
          () => '',
        );
      }
    }
    const clients = Array.from({ length: 3 * limit }, client);
    const serves = (more: number): Promise<void> => {
      const goal = seen.served + more;
      return holds(() => seen.served >= goal);
    };
    await serves(100);
    const asking = new Redis(store.port);
    onTestFinished(() => asking.disconnect());
    const connections = String(await asking.client('LIST'))
      .trim()
      .split('\n');
    asking.disconnect();
    expect(connections.filter((line) => !line.includes('cmd=client'))).toHaveLength(1);
    process.kill(Number(running.events('worker-ready')[0]!.pid), 'SIGKILL');
    await holds(() => running.events('worker-ready').length === 3);
    await serves(50);
    await holds(() => seen.now === limit);
    expect(seen.most).toBe(limit);
    await store.kill();
    await holds(() => running.events('lease-expired').length >= 2);
    expect(running.events('shared-state').map(({ code }) => code)).toContain('unreachable');
    await store.up();
    await holds(() => running.events('lease-recovered').length >= 2);
    await serves(50);
    isOver = true;
    await Promise.all(clients);
    expect(seen.most).toBe(limit);
    running.child.kill('SIGTERM');
    expect((await running.ended).status).toBe(0);
  });
});
