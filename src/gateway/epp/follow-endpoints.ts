/**
 * The servers of an endpoint picker: from a file, read when it changes, as of llm-d's `file-discovery`, or by a name in
 * DNS. Invariant: the pool has those of the last answer; faults of a file, or no answer, change nothing.
 */
import { lookup } from 'node:dns/promises';
import { readFileSync, watch } from 'node:fs';
import { basename, dirname } from 'node:path';
import { Problems } from '../../base/problems.js';
import * as s from '../../base/schema/schema.js';
import { readYaml } from '../../config/read-yaml.js';
import type { EndpointPool } from '../../index.js';
import type { GatewayLog } from '../shared/gateway-log.js';

/** `interval`: ms from one question to the next. */
export type EndpointsSource =
  | { readonly path: string; readonly isWatched: boolean }
  | { readonly dns: string; readonly port: number; readonly interval: number };

const listed = s.object({
  name: s.text(),
  namespace: s.optional(s.text()),
  address: s.text('an IP address'),
  port: s.optional(s.text('a port, in quotes'), '8000'),
  labels: s.optional(s.record(s.text())),
});
const endpointsFile = s.object({ endpoints: s.optional(s.list(listed), []) });

type ListedEndpoint = { readonly id: string; readonly labels: Record<string, string> };

const addressOf = (host: string, port: string | number): string => `${host.includes(':') ? `[${host}]` : host}:${port}`;

/** @throws FlowConfigError that lists every problem; what reading throws */
function readEndpoints(path: string): readonly ListedEndpoint[] {
  const problems = new Problems();
  const [document] = readYaml(readFileSync(path, 'utf8'), problems.sink);
  const { value = {} } = document ?? {};
  const read = problems.check(endpointsFile, s.isRecord(value) ? value : {});
  const all = (read?.endpoints ?? []).map(({ name, namespace, address, port = '8000', labels }) => ({
    id: namespace === undefined ? name : `${namespace}/${name}`,
    labels: { ...labels, address: addressOf(address, port) },
  }));
  for (const { id } of all.filter(({ id }, index) => all.findIndex((each) => each.id === id) < index))
    problems.add('endpoints', 'names that no other endpoint has', JSON.stringify(id));
  if (problems.hasIssues) throw problems.toError(path);
  return all;
}

/** Keeps the pool as the source says; returns a function that ends it. @throws what reading a file first throws */
export function followEndpoints(source: EndpointsSource, pool: EndpointPool, log: GatewayLog): () => void {
  const put = (all: readonly ListedEndpoint[]): void => {
    const wanted = new Map(all.map((endpoint) => [endpoint.id, endpoint]));
    for (const { id, labels } of [...pool.endpoints])
      if (wanted.get(id)?.labels.address !== labels.address) pool.remove(id);
    for (const { id, labels } of all) if (!pool.update(id, { labels })) pool.add(id, { labels });
  };
  let isOver = false;
  let timer: NodeJS.Timeout | undefined;
  /** The last answer, or the last fault: only what is new is told. */
  let last = '';
  const putAgain = async (read: () => Promise<readonly ListedEndpoint[]>): Promise<void> => {
    const from = 'dns' in source ? { dns: source.dns } : { file: source.path };
    try {
      const all = await read();
      const text = JSON.stringify(all);
      if (isOver || text === last) return;
      last = text;
      put(all);
      log('info', 'endpoints', { ...from, endpoints: pool.endpoints.length });
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      if (message !== last) log('error', 'endpoints-refused', { ...from, error: message });
      last = message;
    }
  };
  if ('dns' in source) {
    const ask = async (): Promise<readonly ListedEndpoint[]> => {
      const ids = (await lookup(source.dns, { all: true })).map(({ address }) => addressOf(address, source.port));
      return ids.sort().map((id) => ({ id, labels: { address: id } }));
    };
    timer = setInterval(() => void putAgain(ask), source.interval);
    void putAgain(ask);
  } else put(readEndpoints(source.path));
  // The folder, because most programs write another file and rename it.
  const watcher =
    'path' in source && source.isWatched
      ? watch(dirname(source.path), (_event, name) => {
          if (name !== null && name !== basename(source.path) && !name.startsWith('..')) return;
          clearTimeout(timer);
          timer = setTimeout(() => void putAgain(async () => readEndpoints(source.path)), 20);
        })
      : undefined;
  return () => {
    isOver = true;
    clearTimeout(timer);
    watcher?.close();
  };
}
