/** What the reference's endpoint picker answered to a proxy, played against this one over real gRPC. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { createEpp, loadEppConfig } from '../../../src/gateway/index.js';
import { makeCertificates } from '../../redis/support/certificates.js';
import { isExchange, setupsName } from '../support/vectors.js';
import { differencesMet } from './differences.js';
import { connectTo } from './fake-envoy.js';
import type { Json } from './json.js';
import { type Load, ModelServers } from './model-servers.js';
import { type Play, takeStep } from './steps.js';

const bundled = fileURLToPath(new URL('../vectors-epp/', import.meta.url));
const folder = process.env.VECTORS_DIR || bundled;
const read = (path: string): Json => JSON.parse(readFileSync(path, 'utf8'));
const setups = read(join(existsSync(join(folder, setupsName)) ? folder : bundled, setupsName));
const names = readdirSync(folder).filter((name) => name.endsWith('.json') && isExchange(read(join(folder, name))));

/** The reference's flags, as the section `headgate` says them. */
function sectionOf({ flags }: Json, certificates: string | undefined): string {
  const known: Readonly<Record<string, object>> = {
    '--emit-endpoint-scores': { emitScores: true },
    '--secure-serving=true': { tls: { cert: `${certificates}/server.pem`, key: `${certificates}/server.key` } },
    // What is always so here.
    '--tracing=true': {},
    '--secure-serving=false': {},
    '--tracing=false': {},
    '--health-checking': {},
  };
  const unknown = flags.filter((flag: string) => known[flag] === undefined);
  if (unknown.length > 0) throw new Error(`flags that nobody knows: ${unknown.join(' ')}`);
  const ports = { host: '127.0.0.1', port: 0, healthPort: 0, metricsPort: 0 };
  const own = { ...ports, trust: true, logRequests: false, drainStreams: '100ms' };
  return `headgate: ${JSON.stringify(Object.assign(own, ...flags.map((flag: string) => known[flag])))}`;
}

async function play({ setup: name, servers: loads, endpoints, transcript }: Json): Promise<void> {
  const setup = setups[name];
  if (setup === undefined) throw new Error(`expected a setup of setups.json; got ${name}`);
  const dir = mkdtempSync(join(tmpdir(), 'headgate-epp-'));
  const certificates = setup.flags.includes('--secure-serving=true') ? makeCertificates() : undefined;
  const servers = await ModelServers.start(loads as Load[]);
  const file = join(dir, 'endpoints.yaml');
  const list = (indices: readonly number[]): void => {
    const listed = indices.map((n) => ({
      name: `server-${n}`,
      address: servers.addressOf(n),
      port: String(servers.port),
    }));
    writeFileSync(file, JSON.stringify({ endpoints: listed }));
  };
  list(endpoints ?? [...servers.loads.keys()]);
  const objects = setup.objects === undefined ? '' : `---\n${setup.objects}`;
  const section = sectionOf(setup, certificates?.folder);
  const epp = await createEpp(loadEppConfig(`${setup.config.replace('{endpoints}', file)}\n${section}\n${objects}`));
  const client = connectTo(epp.ports.port, setup.tls === true ? certificates?.folder : undefined);
  const game: Play = { epp, client, servers, list, streams: new Map(), bodies: new Map() };
  try {
    const isScraped = (): void => expect(epp.pool.endpoints.every(({ metrics }) => metrics !== undefined)).toBe(true);
    if (loads.every(({ healthy = true }: Load) => healthy)) await vi.waitFor(isScraped, { timeout: 60_000 });
    for (const [index, step] of transcript.entries()) {
      try {
        await takeStep(game, step);
      } catch (error) {
        throw new Error(`step ${index}: ${JSON.stringify(step).slice(0, 300)}\n${String(error)}`, { cause: error });
      }
    }
  } finally {
    for (const stream of game.streams.values()) stream.cancel();
    client.close();
    await epp.close();
    servers.stop();
    certificates?.remove();
    rmSync(dir, { recursive: true });
  }
}

vi.setConfig({ maxConcurrency: 4 });

describe.skipIf(names.length === 0)('an endpoint picker answers as the reference, or better', () => {
  it.concurrent.each(names)('%s', (name) => play(read(join(folder, name))), 60_000);

  afterAll(() => {
    console.info(`\nendpoint picker, otherwise than the reference:\n${differencesMet()}`);
  });
});
