/**
 * The servers of an endpoint picker, from a file that is read again when it changes. Its form is that of llm-d's plugin
 * `file-discovery`.
 *
 * Invariant: the pool has the servers of the last file that could be read; a file with faults changes nothing.
 */
import { readFileSync, watch } from 'node:fs';
import { basename, dirname } from 'node:path';
import { Problems } from '../../base/problems.js';
import * as s from '../../base/schema/schema.js';
import { isRecord, readYaml } from '../../config/read-yaml.js';
import type { EndpointPool } from '../../index.js';
import type { GatewayLog } from '../shared/gateway-log.js';

const port = s.text('a port, in quotes');
const endpointsFile = s.object({
  endpoints: s.optional(
    s.list(
      s.object({
        name: s.text(),
        namespace: s.optional(s.text()),
        address: s.text('an IP address'),
        port: s.optional(port, '8000'),
        labels: s.optional(s.record(s.text())),
      }),
    ),
    [],
  ),
});

interface ListedEndpoint {
  readonly id: string;
  readonly labels: Record<string, string>;
}

/** @throws FlowConfigError that lists every problem; what reading throws */
function readEndpoints(path: string): readonly ListedEndpoint[] {
  const problems = new Problems();
  const [document] = readYaml(readFileSync(path, 'utf8'), problems.sink);
  const { value = {} } = document ?? {};
  const read = problems.check(endpointsFile, isRecord(value) ? value : {});
  const listed = (read?.endpoints ?? []).map(({ name, namespace, address, port = '8000', labels }) => ({
    id: namespace === undefined ? name : `${namespace}/${name}`,
    labels: { ...labels, address: `${address.includes(':') ? `[${address}]` : address}:${port}` },
  }));
  for (const { id } of listed.filter(({ id }, index) => listed.findIndex((each) => each.id === id) < index))
    problems.add('endpoints', 'names that no other endpoint has', JSON.stringify(id));
  if (problems.hasIssues) throw problems.toError(path);
  return listed;
}

/**
 * Puts the servers of the file into the pool, and with `isWatched` again whenever it changes. Returns a function that
 * reads it now, and one that ends this.
 * @throws what the first reading throws
 */
export function followEndpoints(
  path: string,
  pool: EndpointPool,
  log: GatewayLog,
  isWatched: boolean,
): { readonly read: () => void; readonly stop: () => void } {
  const apply = (): void => {
    const listed = readEndpoints(path);
    const wanted = new Map(listed.map((endpoint) => [endpoint.id, endpoint]));
    for (const { id, labels } of [...pool.endpoints])
      if (wanted.get(id)?.labels.address !== labels.address) pool.remove(id);
    for (const { id, labels } of listed) if (!pool.update(id, { labels })) pool.add(id, { labels });
  };
  const read = (): void => {
    try {
      apply();
      log('info', 'endpoints', { file: path, endpoints: pool.endpoints.length });
    } catch (error) {
      log('error', 'endpoints-refused', { file: path, error: error instanceof Error ? error.message : String(error) });
    }
  };
  apply();
  let timer: NodeJS.Timeout | undefined;
  // The folder, because most programs write another file and rename it.
  const watcher = isWatched
    ? watch(dirname(path), (_event, name) => {
        if (name !== null && name !== basename(path) && !name.startsWith('..')) return;
        clearTimeout(timer);
        timer = setTimeout(read, 20);
      })
    : undefined;
  return {
    read,
    stop() {
      clearTimeout(timer);
      watcher?.close();
    },
  };
}
