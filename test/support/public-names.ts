/**
 * Every name that a user of the package can write or read: exports with their members, options, fields of files,
 * plugins, headers.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { flowKeyFromHeaders, queueDurationHeader, systemOwnedHeaders } from '../../src/adapters/http/index.js';
import { loadBlisPolicy, loadConfig } from '../../src/config/index.js';
import { defaultRegistry, EndpointPool, FlowController, inFlightEviction, resolveOptions } from '../../src/index.js';

const reports = new URL('../../etc/', import.meta.url);
const wrong = { '': 0 };
const file = { apiVersion: 'llm-d.ai/v1alpha1', kind: 'EndpointPickerConfig' };
const band = { priority: 0, ...wrong };

/** Calls that are refused with messages which list what would have been right. */
const refused: readonly (() => unknown)[] = [
  () =>
    resolveOptions({
      ...wrong,
      saturationDetector: () => 0,
      gate: wrong,
      limits: wrong,
      bands: [band],
      eviction: wrong,
    } as never),
  () => inFlightEviction(wrong as never),
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
  const lists = [...message.matchAll(/one of the keys (.*?)(?: \(did you mean|; got)/g)].flatMap(([, list = '']) =>
    list.split(', '),
  );
  const quoted = [...message.matchAll(/(?:one of|,) "([^"]+)"/g)].map(([, name = '']) => name);
  const paths = [...message.matchAll(/^ .*?(\S+): expected/gm)].flatMap(([, path = '']) => path.split(/[^\w-]+/));
  return [...lists, ...quoted, ...paths];
}

/**
 * What the package and its subpaths export, the members of these types, and the words of their unions, by the API
 * reports.
 */
function exported(): string[] {
  return readdirSync(reports).flatMap((file) => {
    const report = readFileSync(new URL(file, reports), 'utf8');
    const names = [
      ...report.matchAll(/^export (?:declare |abstract )?(?:interface|type|class|function|const) (\w+)/gm),
    ];
    const members = [...report.matchAll(/^ +(?:readonly |get |static )*(\w+)[?]?[:(<]/gm)];
    const words = [...report.matchAll(/'([\w-]+)'/g)];
    return [...names, ...members, ...words].map(([, name = '']) => name);
  });
}

/** All of them. Header names are in lower case. */
export function publicNames(): ReadonlySet<string> {
  const methods = [FlowController, EndpointPool].flatMap(({ prototype }) => Object.getOwnPropertyNames(prototype));
  const headers = [...systemOwnedHeaders, queueDurationHeader, 'retry-after'];
  const { fairnessId } = flowKeyFromHeaders({}); // of requests that name none
  const all = [
    fairnessId,
    ...refused.flatMap(namesInErrorOf),
    ...defaultRegistry().types(),
    ...exported(),
    ...methods,
    ...headers,
  ];
  return new Set(all.filter((name) => /^[a-z][\w/.-]+$/i.test(name)));
}
