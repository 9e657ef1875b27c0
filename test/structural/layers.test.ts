/**
 * The layers of docs/architecture.md: imports point one way, types included, and nothing imports itself by a detour.
 */
import { describe, expect, it } from 'vitest';
import { circlesOf, type Imports, importsOfSource } from '../support/imports.js';

/** Lowest first. A folder may import those before it. Folders of one line are strangers to each other. */
const layers: readonly (readonly string[])[] = [
  ['base'],
  ['tiers'],
  ['endpoints'],
  ['gate'],
  ['admission', 'eviction'],
  ['plugins'],
  ['core'],
  ['index.ts'],
  ['adapters', 'config', 'upstream', 'observability', 'client', 'redis', 'testing'],
  ['simulator', 'fetch'],
  ['gateway'],
];
const subpaths = layers[layers.findIndex((layer) => layer.includes('index.ts')) + 1]!;

/** Circles that are one structure: a parent and its children, or two types that name each other. */
const structures: readonly (readonly string[])[] = [
  // An outcome carries its lease, and a lease that is queued again ends in another outcome.
  ['core/outcome/lease.ts', 'core/outcome/outcome.ts'],
  // A band holds its flows, a flow its requests, and each knows where it stands.
  ['tiers/flow.ts', 'tiers/held-flows.ts', 'tiers/parked-flows.ts', 'tiers/priority-band.ts', 'tiers/waiting-item.ts'],
];

/** A function without classes and state may be in two bundles: the gateway's files are read as the library's are. */
const inTwoBundles: readonly string[] = ['config/read-yaml.ts'];

const imports = importsOfSource();
const edges = [...imports].flatMap(([from, targets]) => targets.map((to) => ({ from, to })));
const topOf = (file: string): string => file.split('/')[0]!;
const layerOf = (file: string): number => layers.findIndex((layer) => layer.includes(topOf(file)));
const folderOf = (file: string): string => file.split('/').slice(0, -1).join('/');
const told = (faults: readonly { from: string; to: string }[]): string[] =>
  faults.map(({ from, to }) => `${from} imports ${to}`);

/**
 * Folder → folders that its own files import. A folder and one inside it are parent and child: their imports do not
 * count.
 */
function importsOfFolders(): Imports {
  const graph = new Map<string, string[]>();
  for (const { from, to } of edges) {
    const [a, b] = [folderOf(from), folderOf(to)];
    const areRelated = `${a}/`.startsWith(`${b}/`) || `${b}/`.startsWith(`${a}/`);
    if (!areRelated) graph.set(a, [...(graph.get(a) ?? []), b]);
  }
  return graph;
}

describe('the layers of src', () => {
  it('have every file in one of them', () => {
    expect([...imports.keys()].filter((file) => layerOf(file) < 0)).toEqual([]);
    expect(edges.length).toBeGreaterThan(500);
  });

  it('import downwards only', () => {
    const upwards = edges.filter(({ from, to }) => layerOf(to) > layerOf(from));
    expect(told(upwards)).toEqual([]);
  });

  it('have no imports between strangers', () => {
    const sideways = edges.filter(({ from, to }) => layerOf(to) === layerOf(from) && topOf(to) !== topOf(from));
    expect(told(sideways)).toEqual([]);
  });

  it('reach the core from a subpath through index.ts alone, so that every class exists once', () => {
    // The audit reads plain state that no user of the package may see; it makes no object of the core's classes.
    const others = edges.filter(({ from, to }) => topOf(from) !== 'testing' || to !== 'core/inspect/audit.ts');
    const past = others.filter(
      ({ from, to }) => subpaths.includes(topOf(from)) && !['base', 'index.ts', topOf(from)].includes(topOf(to)),
    );
    expect(told(past)).toEqual([]);
  });

  it('let the gateway import only what a user of the package can', () => {
    const ofGateway = edges.filter(({ from, to }) => topOf(from) === 'gateway' && topOf(to) !== 'gateway');
    const past = ofGateway.filter(({ to }) => !to.endsWith('index.ts') && !inTwoBundles.includes(to));
    expect(told(past)).toEqual([]);
  });

  it('let the fetch import only what a user of the package can, and plain functions of base', () => {
    const ofFetch = edges.filter(({ from, to }) => topOf(from) === 'fetch' && topOf(to) !== 'fetch');
    expect(told(ofFetch.filter(({ to }) => !to.endsWith('index.ts') && topOf(to) !== 'base'))).toEqual([]);
  });

  it('let the simulator import only what a user of the package can, and plain functions of base', () => {
    const ofSimulator = edges.filter(({ from, to }) => topOf(from) === 'simulator' && topOf(to) !== 'simulator');
    const past = ofSimulator.filter(
      ({ to }) => !to.endsWith('index.ts') && !inTwoBundles.includes(to) && topOf(to) !== 'base',
    );
    expect(told(past)).toEqual([]);
  });

  it('have no circle of folders, parent and child excepted', () => {
    expect(circlesOf(importsOfFolders())).toEqual([]);
  });

  it('have no circle of files but those that are one structure', () => {
    expect(circlesOf(imports)).toEqual(structures);
  });
});

describe('circlesOf', () => {
  it('finds what reaches itself, and nothing else', () => {
    const graph = new Map([
      ['a', ['b']],
      ['b', ['c', 'd']],
      ['c', ['a']],
      ['d', ['e']],
      ['e', []],
    ]);
    expect(circlesOf(graph)).toEqual([['a', 'b', 'c']]);
  });
});
