/** Every name that a user of the package can write or read: exports with their members, options, fields of files, plugins, headers. */
import { readFileSync } from 'node:fs';
import { entryPoints } from '../../scripts/entry-points.mjs';
import { queueDurationHeader, systemOwnedHeaders } from '../../src/adapters/http/index.js';
import { loadBlisPolicy, loadConfig } from '../../src/config/index.js';
import { defaultRegistry, EndpointPool, FlowController, resolveOptions } from '../../src/index.js';

const wrong = { '': 0 };
const file = { apiVersion: 'llm-d.ai/v1alpha1', kind: 'EndpointPickerConfig' };
const band = { priority: 0, ...wrong };

/** Calls that are refused with messages which list what would have been right. */
const refused: readonly (() => unknown)[] = [
  () => resolveOptions({ ...wrong, saturationDetector: () => 0, gate: wrong, limits: wrong, bands: [band], eviction: wrong } as never),
  () => loadConfig({ ...file, featureGates: 0, saturationDetector: wrong, plugins: [wrong] }),
  () => loadConfig({ ...file, flowControl: { ...wrong, priorityBands: [band], gate: wrong, flows: { a: wrong } } }),
  () => loadConfig({ kind: 'InferenceObjective', spec: wrong }),
  () => loadBlisPolicy({ ...wrong, admission: wrong }),
  ...defaultRegistry()
    .types()
    .map((type) => () => defaultRegistry().create(type, wrong)),
];

/** The names in lists of keys, in quotes, and in the paths of the message. */
function namesInErrorOf(action: () => unknown): string[] {
  let message = '';
  try {
    action();
  } catch (error) {
    message = String(error);
  }
  const lists = [...message.matchAll(/one of the keys (.*?)(?: \(did you mean|; got)/g)].flatMap(([, list = '']) => list.split(', '));
  const quoted = [...message.matchAll(/(?:one of|,) "([^"]+)"/g)].map(([, name = '']) => name);
  const paths = [...message.matchAll(/^ .*?(\S+): expected/gm)].flatMap(([, path = '']) => path.split(/[^\w-]+/));
  return [...lists, ...quoted, ...paths];
}

/** Members of an interface, and the words of a union. */
function partsOf(type: string, source: string): string[] {
  const body = new RegExp(`^export interface ${type}\\b[^{]*\\{\\n(.*?)^\\}`, 'ms').exec(source)?.[1] ?? '';
  const members = [...body.matchAll(/^ {2}(?:readonly )?(\w+)[?]?[:(<]/gm)].map(([, name = '']) => name);
  const union = new RegExp(`^export type ${type}\\b[^=]*=(.*?);\\n`, 'ms').exec(source)?.[1] ?? '';
  const words = [...`${body}${union}`.matchAll(/'([\w-]+)'/g)].map(([, word = '']) => word);
  return [...members, ...words];
}

/** What the index files of the package and of its subpaths export, types included, and what these are made of. */
function exported(): string[] {
  return Object.values(entryPoints).flatMap((path) => {
    const index = new URL(`../../${path}`, import.meta.url);
    const statements = readFileSync(index, 'utf8').matchAll(/^export (?:type )?\{(.*?)\} from '(.*?)\.js';/gms);
    return [...statements].flatMap(([, list = '', path = '']) => {
      const source = readFileSync(new URL(`${path}.ts`, index), 'utf8');
      const names = list.split(',').map((entry) => entry.replace(/^\s*type /, '').trim());
      return names.flatMap((type) => [type, ...partsOf(type, source)]);
    });
  });
}

/** All of them. Header names are in lower case. */
export function publicNames(): ReadonlySet<string> {
  const methods = [FlowController, EndpointPool].flatMap(({ prototype }) => Object.getOwnPropertyNames(prototype));
  const headers = [...systemOwnedHeaders, queueDurationHeader, 'retry-after'];
  const all = [...refused.flatMap(namesInErrorOf), ...defaultRegistry().types(), ...exported(), ...methods, ...headers];
  return new Set(all.filter((name) => /^[a-z][\w/.-]+$/i.test(name)));
}
