/** Autoscaling, in docs/deployment.md: its snippet answers, its manifests are manifests, and what they read is there to be read. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { Registry } from 'prom-client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { demandHandler } from '../../src/adapters/http/index.js';
import { loadGatewayConfig } from '../../src/gateway/index.js';
import { EndpointPool } from '../../src/index.js';
import { prometheusMetrics } from '../../src/observability/prometheus/index.js';
import { key, makeFlow, runNow } from '../support/flow.js';

const root = new URL('../../', import.meta.url);
/** Inside the package, so that the snippet's imports resolve as a user's would. */
const scratch = new URL('test-results/autoscaling/', root);
const [, page = ''] =
  /^## Autoscaling\n(.*?)^## /ms.exec(readFileSync(new URL('docs/deployment.md', root), 'utf8')) ?? [];

beforeAll(() => mkdirSync(scratch, { recursive: true }));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

interface Trigger {
  type: string;
  metadata: Record<string, string>;
  authenticationRef?: { name: string };
}

interface ScaledObject {
  apiVersion: string;
  kind: string;
  spec: {
    scaleTargetRef: { name: string };
    minReplicaCount: number;
    maxReplicaCount: number;
    triggers: Trigger[];
  };
}

const documents = [...page.matchAll(/```yaml\n(.*?)```/gs)].flatMap(([, yaml = '']) =>
  parseAllDocuments(yaml).map((document) => document.toJS() as object),
);
const manifests = documents.filter(
  (document): document is ScaledObject => Reflect.get(document, 'kind') === 'ScaledObject',
);
/** Those of the manifest, and those that stand alone and take their place. */
const triggers = [
  ...manifests.flatMap(({ spec }) => spec.triggers),
  ...documents.flatMap((document) => ('triggers' in document ? (document.triggers as Trigger[]) : [])),
];
const trigger = (type: string) => triggers.find((each) => each.type === type)!.metadata;

/** What KEDA's valueLocation finds: a path of names, as GJSON reads it. */
const at = (path: string, value: unknown): unknown =>
  path
    .split('.')
    .reduce((here, name) => (typeof here === 'object' && here !== null ? Reflect.get(here, name) : undefined), value);

/** A gateway with something in every figure. */
function busyFlow() {
  const pool = new EndpointPool();
  pool.add('e');
  const { flow } = makeFlow({ pool, bands: [{ priority: 100 }] });
  runNow(flow);
  void flow.enqueue({ byteSize: 10, tokens: 3 }, key('a', 100));
  return flow;
}

async function answered(): Promise<object> {
  return JSON.parse((await demandHandler(busyFlow())({ method: 'GET', headers: {} })).body) as object;
}

describe('autoscaling, in docs/deployment.md', () => {
  it('has ScaledObjects whose bounds and triggers are of the form that KEDA wants', () => {
    expect([manifests.length, triggers.length]).toEqual([1, 3]);
    for (const { apiVersion, kind, spec } of manifests) {
      expect([apiVersion, kind]).toEqual(['keda.sh/v1alpha1', 'ScaledObject']);
      expect(spec.maxReplicaCount).toBeGreaterThan(spec.minReplicaCount);
      expect(spec.scaleTargetRef.name).toBeTruthy();
    }
    // Metadata of triggers is text, numbers included.
    for (const { metadata } of triggers)
      for (const value of Object.values(metadata)) expect(value).toBeTypeOf('string');
  });

  it('reads a number that the handler answers', async () => {
    const { format, valueLocation = '', targetValue } = trigger('metrics-api');
    expect([format, at(valueLocation, await answered())]).toEqual(['json', 2]);
    expect(Number(targetValue)).toBeGreaterThan(0);
  });

  it('asks the ports of the gateway file that it shows, with a token where the port is that of clients', () => {
    const file = documents.find((document) => 'listen' in document) as object;
    const { listen, admin, demand } = loadGatewayConfig(file);
    const asked = triggers.filter(({ type }) => type === 'metrics-api');
    const urls = asked.map(({ metadata: { url = '' } }) => new URL(url.split(' ')[0] as string));
    expect(urls.map(({ port, pathname }) => [Number(port), pathname])).toEqual([
      [admin.listen?.port, demand.path],
      [listen.port, demand.path],
    ]);
    const [open, guarded] = asked;
    expect([open?.metadata.authMode, guarded?.metadata.authMode]).toEqual([undefined, 'bearer']);
    const authentication = documents.find((document) => Reflect.get(document, 'kind') === 'TriggerAuthentication');
    expect(guarded?.authenticationRef?.name).toBe(at('metadata.name', authentication));
  });

  it('names other paths that lead somewhere', async () => {
    const [, sentence = ''] = /`valueLocation` takes (.*?)\. /s.exec(page) ?? [];
    const paths = [...sentence.matchAll(/`([^`]+)`/g)].map(([, path = '']) => path);
    expect(paths).toEqual(['bands.100.waiting', 'waitingTokens']);
    const answer = await answered();
    expect(paths.map((path) => at(path, answer))).toEqual([1, 3]);
  });

  it('has every field of the answer, and no other', async () => {
    const [table = ''] = /\| field \|[\s\S]*?\n\n/.exec(page) ?? [];
    const rows = table
      .split('\n')
      .slice(2)
      .map((row) => row.split('|')[1] ?? '');
    const described = rows.flatMap((cell) => [...cell.matchAll(/`(\w+)`/g)].map(([, name]) => name));
    expect(described.sort()).toEqual(Object.keys(await answered()).sort());
  });

  it('asks Prometheus for metrics that headgate has, by labels that they have', async () => {
    const register = new Registry();
    prometheusMetrics(busyFlow(), { register, inferencePool: 'llama' });
    const exposed = await register.metrics();
    const { query = '' } = trigger('prometheus');
    const series = [...query.matchAll(/(\w+)\{(\w+="\w+")\}/g)];
    expect(series).toHaveLength(2);
    for (const [, name, label] of series)
      expect(exposed).toMatch(new RegExp(`^${name}\\{(?:[^}]*,)?${label}[^}]*\\} \\d`, 'm'));
  });

  it('has a snippet that answers', async () => {
    const [, code = ''] = /```js\n(.*?)```/s.exec(page) ?? [];
    const file = new URL('snippet.mjs', scratch);
    writeFileSync(file, code);
    const snippet = (await import(/* @vite-ignore */ pathToFileURL(fileURLToPath(file)).href)) as {
      answer(request: Request): Promise<Response>;
    };
    const response = await snippet.answer(new Request('http://gateway/demand'));
    expect(await response.json()).toMatchObject({ requests: 0, timeToDrainMs: 0 });
  });
});
