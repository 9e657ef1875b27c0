/**
 * The layers of docs/architecture.md: imports point one way, types included, and nothing imports itself by a detour.
 * The linter's rules say the same of every pair of files, so that an editor shows a breach; circles are for this test.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { circlesOf, type Imports, importsOfSource } from '../support/imports.js';
import { layers, linterRules, mayImport, rankOf, roomOf } from '../support/layers.js';

/** Circles that are one structure: a parent and its children, or two types that name each other. */
const structures: readonly (readonly string[])[] = [
  // An outcome carries its lease, and a lease that is queued again ends in another outcome.
  ['core/outcome/lease.ts', 'core/outcome/outcome.ts'],
  // A band holds its flows, a flow its requests, and each knows where it stands.
  ['tiers/flow.ts', 'tiers/flows-aside.ts', 'tiers/priority-band.ts'],
];

const root = fileURLToPath(new URL('../../', import.meta.url));
const ruleFile = join(root, 'biome.layers.json');
const imports = importsOfSource();
const files = [...imports.keys()];
const edges = [...imports].flatMap(([from, targets]) => targets.map((to) => ({ from, to })));
/** Throwaway files in each folder: at its top, and as deep as any file. */
const probes = layers
  .flat()
  .flatMap((room) => (room === 'index.ts' ? [room] : [`${room}/probe.ts`, `${room}/deep/deeper/probe.ts`]));
const folderOf = (file: string): string => file.split('/').slice(0, -1).join('/');
const told = ({ from, to }: { from: string; to: string }): string => `${from} imports ${to}`;

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

/** What the linter forbids to the throwaway files, each of which imports every file of src. */
function importsThatLinterForbids(): string[] {
  const scratch = mkdtempSync(join(tmpdir(), 'headgate-layers-'));
  try {
    cpSync(ruleFile, join(scratch, 'rules.json'));
    const settings = { extends: ['./rules.json'], linter: { rules: { preset: 'none' } } };
    writeFileSync(join(scratch, 'biome.json'), JSON.stringify(settings));
    for (const probe of probes) {
      const lines = files.map((to) => `export type { A } from '${specifierOf(probe, to)}';`);
      mkdirSync(join(scratch, 'src', folderOf(probe)), { recursive: true });
      writeFileSync(join(scratch, 'src', probe), lines.join('\n'));
    }
    const biome = join(root, 'node_modules/@biomejs/biome/bin/biome');
    const words = [biome, 'lint', '--reporter=github', '--max-diagnostics=none', 'src'];
    const { stdout } = spawnSync(process.execPath, words, { cwd: scratch, encoding: 'utf8', maxBuffer: 2 ** 28 });
    const findings = stdout.matchAll(/noRestrictedImports,file=(?:.*?\/)?src\/([^,]+),line=(\d+)/g);
    return [...findings].map(([, from, line]) => told({ from: from!, to: files[Number(line) - 1]! }));
  } finally {
    rmSync(scratch, { recursive: true });
  }
}

/** Such as `../gate/gate.js`. */
function specifierOf(from: string, to: string): string {
  const path = posix.relative(folderOf(from), to).replace(/ts$/, 'js');
  return path.startsWith('.') ? path : `./${path}`;
}

describe('the layers of src', () => {
  it('have every file in one of them', () => {
    expect(files.filter((file) => rankOf(roomOf(file)) < 0)).toEqual([]);
    expect(edges.length).toBeGreaterThan(500);
  });

  it('stand in this order in docs/architecture.md', () => {
    const page = readFileSync(join(root, 'docs/architecture.md'), 'utf8');
    const rows = [...page.matchAll(/^\| `src\/([\w.-]+)/gm)].map(([, room]) => room!);
    expect(rows.map(rankOf)).toEqual(rows.map(rankOf).sort((a, b) => a - b));
    expect(new Set(rows)).toEqual(new Set(layers.flat()));
  });

  it('have no import but those that are open to their folder', () => {
    expect(edges.filter(({ from, to }) => !mayImport(from, to)).map(told)).toEqual([]);
  });

  it('have rules in the linter that are made of them: -u writes the file', async () => {
    await expect(`${JSON.stringify(linterRules(), null, 2)}\n`).toMatchFileSnapshot(ruleFile);
  });

  it('have rules in the linter that find every breach, and nothing else', () => {
    const forbidden = new Set(importsThatLinterForbids());
    const pairs = probes.flatMap((from) => files.map((to) => ({ from, to })));
    const misjudged = pairs.filter(({ from, to }) => mayImport(from, to) === forbidden.has(told({ from, to })));
    expect(misjudged.map(told)).toEqual([]);
    expect(pairs.length - forbidden.size).toBeGreaterThan(500);
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
