/** Reads vector files: every `*.json` of one folder, whatever their generation. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/** One vector. What a file calls `component` is its kind here; what has no `input` is its own input. */
export interface Vector<I = object, E = object> {
  readonly id: string;
  readonly kind: string;
  readonly name: string;
  readonly input: I;
  readonly expect: E;
  /** Absolute; exact when absent. */
  readonly tolerance: number | undefined;
  /** The vector as it stands in the file, for the selectors of deviations. */
  readonly raw: object;
}

export interface VectorFile {
  readonly name: string;
  readonly vectors: readonly Vector[];
  /** What the file says it may hold, whether or not it holds one. */
  readonly kinds: readonly string[];
}

const checkout = fileURLToPath(new URL('../../..', import.meta.url));
const shared = resolve(checkout, '../shared/vectors');
const bundled = resolve(checkout, 'test/conformance/vectors');

/** `VECTORS_DIR`, else the vectors beside the checkout, else the copy inside it. */
const vectorsFolder: string = resolve(process.env.VECTORS_DIR || (existsSync(shared) ? shared : bundled));

/** False for vectors that somebody brought along: the project cannot know what is in them. */
export const isOwnFolder: boolean = vectorsFolder === shared || vectorsFolder === bundled;

/** The folder as messages show it. */
export const folderName: string = relative(checkout, vectorsFolder) || '.';

/** @throws Error when the folder has no vector file, or a file has no list of vectors. */
export function readVectorFiles(folder: string = vectorsFolder): VectorFile[] {
  const names = readdirSync(folder)
    .filter((name) => name.endsWith('.json'))
    .sort();
  if (names.length === 0) throw new Error(`no *.json in ${folder}`);
  return names
    .map((name) => ({ name, content: JSON.parse(readFileSync(join(folder, name), 'utf8')) }))
    .filter(({ name, content }) => name !== setupsName && !isExchange(content))
    .map(({ name, content }) => readVectorFile(name, content));
}

/** Beside exchanges: the configurations that they name. */
export const setupsName = 'setups.json';

/** Steps between a proxy and an endpoint picker: `epp-vectors.test.ts` plays them. */
export function isExchange(content: object): boolean {
  return 'transcript' in content;
}

function readVectorFile(name: string, content: { vectors?: unknown; kinds?: object }): VectorFile {
  if (!Array.isArray(content.vectors)) throw new Error(`${name}: expected { "vectors": [...] }`);
  const vectors = content.vectors.map(toVector);
  return {
    name,
    vectors,
    kinds: [...new Set([...Object.keys(content.kinds ?? {}), ...vectors.map(({ kind }) => kind)])],
  };
}

function toVector(raw: Record<string, unknown>): Vector {
  const { id, kind, component, name, note, input, expect, tolerance } = raw;
  return {
    id: String(id),
    kind: String(kind ?? component ?? 'no kind'),
    name: String(name ?? note ?? ''),
    input: (input ?? raw) as object,
    expect: (expect ?? {}) as object,
    tolerance: tolerance as number | undefined,
    raw,
  };
}
