/** Which file of src imports which, types included, and the circles among them. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const src = fileURLToPath(new URL('../../src/', import.meta.url));

/** From → to, both as paths below src with `/`. */
export type Imports = ReadonlyMap<string, readonly string[]>;

const withSlashes = (path: string): string => path.split(sep).join('/');

/** The files of src that each file of src imports. */
export function importsOfSource(): Imports {
  const files = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
  return new Map(
    files.map((file) => {
      const { importedFiles } = ts.preProcessFile(readFileSync(join(src, file), 'utf8'));
      const own = importedFiles.filter(({ fileName }) => fileName.startsWith('.'));
      const targets = own.map(({ fileName }) =>
        relative(src, resolve(src, dirname(file), fileName)).replace(/\.js$/, '.ts'),
      );
      return [withSlashes(file), [...new Set(targets.map(withSlashes))]];
    }),
  );
}

/** Sets of nodes that reach each other, each in alphabetical order. Tarjan's algorithm. */
export function circlesOf(graph: Imports): string[][] {
  const order = new Map<string, number>();
  const lowest = new Map<string, number>();
  const path: string[] = [];
  const circles: string[][] = [];
  const visit = (node: string): number => {
    const own = order.size;
    order.set(node, own);
    lowest.set(node, own);
    path.push(node);
    for (const next of graph.get(node) ?? []) {
      const reached = order.has(next) ? (path.includes(next) ? order.get(next)! : own) : visit(next);
      lowest.set(node, Math.min(lowest.get(node)!, reached));
    }
    if (lowest.get(node) === own) {
      const circle = path.splice(path.indexOf(node));
      if (circle.length > 1) circles.push(circle.sort());
    }
    return lowest.get(node)!;
  };
  for (const node of graph.keys()) if (!order.has(node)) visit(node);
  return circles.sort();
}
