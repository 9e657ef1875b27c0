/**
 * Workers of two machines behind one limit of a store. Each machine is one replica, with one connection; seats of a
 * worker that dies are free at once, those of a machine when its drain is over.
 */
import { writeFileSync } from 'node:fs';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { bundleCli, type CliProcess } from '../../gateway/support/bundled-cli.js';
import { countingServer } from '../../gateway/support/counting-server.js';
import { fileOf } from '../../gateway/support/gateway.js';
import { Store, storeKinds } from '../support/stores.js';
import { until } from '../support/with-store.js';

const limit = 6;
const patientMs = 120_000;
const timing = {
  refreshInterval: '200ms',
  leaseDuration: '1500ms',
  callTimeout: '500ms',
  drainDuration: '1500ms',
  forgetAfter: '1s',
};

let cli: Awaited<ReturnType<typeof bundleCli>>;
beforeAll(async () => {
  cli = await bundleCli();
});
afterAll(() => cli.remove());

describe.runIf(storeKinds.length > 0).each(storeKinds)('workers and a limit in $name', (kind) => {
  async function world() {
    const store = await Store.start(kind);
    onTestFinished(() => store.stop());
    const seen = await countingServer();
    const machines: CliProcess[] = [];
    const heard = (): unknown => [seen, ...machines.map(({ stderr }) => stderr.slice(-2_000))];
    const holds = (isTrue: () => boolean): Promise<void> => until(isTrue, heard, patientMs);
    function write(file: string, replica: string, maxConcurrency: number): void {
      const sharedState = { url: store.url, pool: 'chat', maxConcurrency, replicas: 2, replica, ...timing };
      writeFileSync(
        file,
        JSON.stringify(fileOf([seen.url], { sharedState, log: { format: 'json', requests: false } }, 100)),
      );
    }
    async function machine(replica: string) {
      const file = `${cli.folder}/${kind.name}-${replica}.json`;
      write(file, replica, limit);
      const running = cli.start(['gateway', '--config', file, '--workers', '2']);
      machines.push(running);
      await holds(() => running.events('listening').length === 1);
      return {
        running,
        url: String(running.events('listening')[0]!.url),
        write: (most: number) => write(file, replica, most),
      };
    }
    let isOver = false;
    async function client(url: string): Promise<void> {
      while (!isOver) {
        const options = { method: 'POST', body: '{"model":"m","messages":[]}', signal: AbortSignal.timeout(10_000) };
        const headers = { 'content-type': 'application/json', connection: 'close' };
        await fetch(`${url}/v1/chat/completions`, { ...options, headers }).then(
          (response) => response.text(),
          () => new Promise((resolve) => setTimeout(resolve, 20)),
        );
      }
    }
    const clients: Promise<void>[] = [];
    const load = (url: string): void => void clients.push(...Array.from({ length: 2 * limit }, () => client(url)));
    const serves = (more: number): Promise<void> => {
      const goal = seen.served + more;
      return holds(() => seen.served >= goal);
    };
    async function end(): Promise<void> {
      isOver = true;
      await Promise.all(clients);
    }
    return { store, seen, machine, load, serves, holds, end };
  }

  it('are one replica and one connection for each machine', { timeout: patientMs }, async () => {
    const { store, seen, machine, load, serves, holds, end } = await world();
    const [east, west] = [await machine('east'), await machine('west')];
    load(east.url);
    load(west.url);
    await serves(100);
    const asking = new Redis(store.port);
    onTestFinished(() => asking.disconnect());
    const connections = String(await asking.client('LIST'))
      .trim()
      .split('\n');
    expect(connections.filter((line) => !line.includes('cmd=client'))).toHaveLength(2);
    expect((await asking.hkeys('headgate:{chat}:lease')).sort()).toEqual(['#', 'east', 'west']);
    await holds(() => seen.now === limit);
    east.running.child.kill('SIGTERM');
    expect((await east.running.ended).status).toBe(0);
    expect((await asking.hkeys('headgate:{chat}:lease')).sort()).toEqual(['#', 'east', 'west']);
    await holds(() => seen.now === limit);
    await end();
    expect(seen.most).toBe(limit);
  });

  it('keep it while workers and machines are killed, the limit is changed and the store goes', {
    timeout: 2 * patientMs,
  }, async () => {
    const { store, seen, machine, load, serves, holds, end } = await world();
    const [east, west] = [await machine('east'), await machine('west')];
    load(east.url);
    load(west.url);
    await serves(100);

    // A worker dies: its part is free at once, within the machine.
    process.kill(Number(east.running.events('worker-ready')[0]!.pid), 'SIGKILL');
    await holds(() => east.running.events('worker-ready').length === 3);
    await serves(50);
    await holds(() => seen.now === limit);

    // The store goes: each machine has its safe share, and says so once.
    await store.kill();
    await holds(() => [east, west].every(({ running }) => running.events('lease-expired').length === 1));
    expect(east.running.events('shared-state').map(({ code }) => code)).toContain('unreachable');
    const { status, problem } = (await (await fetch(`${east.url}/readyz`)).json()) as Record<string, object>;
    expect({ status, problem }).toMatchObject({ status: 'ready', problem: { code: 'unreachable' } });
    await serves(50);
    await store.up();
    await holds(() => [east, west].every(({ running }) => running.events('lease-recovered').length === 1));
    await serves(50);
    await holds(() => seen.now === limit);

    // A machine is killed, and its workers end with it: the other has all once it is forgotten.
    east.running.child.kill('SIGKILL');
    await east.running.ended;
    await holds(() => seen.now === limit);
    const again = await machine('east');
    load(again.url);
    await holds(() => seen.now === limit);
    await serves(100);
    expect(seen.most).toBe(limit);

    // Both read another limit.
    for (const each of [again, west]) {
      each.write(3);
      each.running.child.kill('SIGHUP');
      await holds(() => each.running.events('reloaded').length > 0);
    }
    await holds(() => seen.now <= 3);
    seen.most = 0;
    await serves(100);
    expect(seen.most).toBe(3);
    await end();
    west.running.child.kill('SIGTERM');
    expect((await west.running.ended).status).toBe(0);
  });
});
