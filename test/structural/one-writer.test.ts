/**
 * Fields of bands, flows, requests, leases and of the engine's parts are written by their own class. A field that
 * another class writes in its place says so: "Written by X", and nobody else writes it. Constructors may give every
 * field its first value.
 */
import { posix, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../', import.meta.url));
/** The records of a policy or a quota are its own affair. */
const ruled = /^src\/(tiers\/[^/]+|gate\/[^/]+|core\/.+|endpoints\/.+|admission\/.+|eviction\/.+)\.ts$/;

interface Field {
  readonly name: string;
  /** The file of an interface that declares the field may write it: the links of a list, for example. */
  readonly homes: ReadonlySet<string>;
  /** The name after "Written by" in its docstring. */
  readonly writer: string | undefined;
  /** Files that write it, the constructors of its own file left out. */
  readonly writtenIn: Set<string>;
}

function programOf(files: Readonly<Record<string, string>> = {}): ts.Program {
  const config = ts.getParsedCommandLineOfConfigFile(
    `${root}tsconfig.json`,
    {},
    {
      ...ts.sys,
      onUnRecoverableConfigFileDiagnostic: () => {},
    },
  );
  if (config === undefined) throw new Error('tsconfig.json cannot be read');
  const host = ts.createCompilerHost(config.options);
  const { getSourceFile, fileExists } = host;
  host.fileExists = (name) => files[pathOf(name)] !== undefined || fileExists(name);
  host.getSourceFile = (name, ...rest) => {
    const text = files[pathOf(name)];
    return text === undefined ? getSourceFile(name, ...rest) : ts.createSourceFile(name, text, ts.ScriptTarget.Latest);
  };
  const rootNames = Object.keys(files).map((name) => `${root}${name}`);
  const isOwn = rootNames.length > 0;
  return ts.createProgram({
    rootNames: isOwn ? rootNames : config.fileNames.filter((name) => pathOf(name).startsWith('src/')),
    options: isOwn ? { noLib: true, types: [] } : config.options,
    host,
  });
}

const pathOf = (name: string): string => relative(root, name).split(sep).join(posix.sep);

/** Every field of a class under the rule, with its writers. */
function fieldsOf(program: ts.Program): Field[] {
  const checker = program.getTypeChecker();
  const sources = program.getSourceFiles().filter((source) => pathOf(source.fileName).startsWith('src/'));
  const fields = new Map<ts.Declaration, Field>();
  /** The same field as an interface declares it, and as the class does that implements it. */
  const declared = new Map<ts.Declaration, Field[]>();

  const noteClass = (node: ts.ClassDeclaration, file: string): void => {
    const bases = (node.heritageClauses ?? []).flatMap(({ types }) =>
      types.map((type) => checker.getTypeAtLocation(type)),
    );
    for (const member of node.members) {
      if (!ts.isPropertyDeclaration(member)) continue;
      const text = ts
        .getJSDocCommentsAndTags(member)
        .map((each) => each.getText().replace(/\s*\n\s*\* ?/g, ' '))
        .join(' ');
      const origins = bases.flatMap((base) => base.getProperty(member.name.getText())?.declarations ?? []);
      const field: Field = {
        name: `${node.name?.text}.${member.name.getText()}`,
        homes: new Set([file, ...origins.map((origin) => pathOf(origin.getSourceFile().fileName))]),
        writer: /Written by (?:`(\w+)`|([A-Z]\w+))/.exec(text)?.slice(1).find(Boolean),
        writtenIn: new Set(),
      };
      fields.set(member, field);
      for (const origin of [member, ...origins]) declared.set(origin, [...(declared.get(origin) ?? []), field]);
    }
  };

  const noteWrite = (target: ts.Node, source: ts.SourceFile): void => {
    if (ts.isParenthesizedExpression(target) || ts.isAsExpression(target) || ts.isNonNullExpression(target)) {
      noteWrite(target.expression, source);
      return;
    }
    if (!ts.isPropertyAccessExpression(target)) return;
    const isFirstValue = target.expression.kind === ts.SyntaxKind.ThisKeyword && isInConstructor(target);
    if (isFirstValue) return;
    for (const declaration of checker.getSymbolAtLocation(target.name)?.declarations ?? [])
      for (const field of declared.get(declaration) ?? []) field.writtenIn.add(pathOf(source.fileName));
  };

  const each = (visit: (node: ts.Node, source: ts.SourceFile) => void): void => {
    for (const source of sources) {
      const walk = (node: ts.Node): void => {
        visit(node, source);
        ts.forEachChild(node, walk);
      };
      walk(source);
    }
  };
  each((node, { fileName }) => {
    if (ts.isClassDeclaration(node) && ruled.test(pathOf(fileName))) noteClass(node, pathOf(fileName));
  });
  each((node, source) => {
    if (ts.isBinaryExpression(node) && isAssignment(node.operatorToken.kind)) noteWrite(node.left, source);
    else if ((ts.isPrefixUnaryExpression(node) || ts.isPostfixUnaryExpression(node)) && isStep(node.operator))
      noteWrite(node.operand, source);
  });
  return [...fields.values()];
}

const isAssignment = (kind: ts.SyntaxKind): boolean =>
  kind >= ts.SyntaxKind.FirstAssignment && kind <= ts.SyntaxKind.LastAssignment;
const isStep = (kind: ts.SyntaxKind): boolean =>
  kind === ts.SyntaxKind.PlusPlusToken || kind === ts.SyntaxKind.MinusMinusToken;

function isInConstructor(node: ts.Node): boolean {
  for (let up: ts.Node | undefined = node.parent; up !== undefined; up = up.parent) {
    if (ts.isConstructorDeclaration(up)) return true;
    if (ts.isFunctionLike(up) || ts.isClassDeclaration(up)) return false;
  }
  return false;
}

/** Why the field breaks the rule; undefined when it keeps it. */
function faultOf({ name, homes, writer, writtenIn }: Field, program: ts.Program): string | undefined {
  const others = [...writtenIn].filter((each) => !homes.has(each));
  if (writer === undefined) return others.length === 0 ? undefined : `${name} is written in ${others.join(', ')}`;
  const [only, ...more] = writtenIn;
  if (only === undefined || more.length > 0) return `${name} says "Written by ${writer}": ${[...writtenIn].join(', ')}`;
  const source = program.getSourceFile(`${root}${only}`);
  const declares = source?.statements.some(
    (each) => (ts.isClassDeclaration(each) || ts.isFunctionDeclaration(each)) && each.name?.text === writer,
  );
  return declares === true ? undefined : `${name} says "Written by ${writer}", and ${only} has no ${writer}`;
}

function faultsOf(program: ts.Program): string[] {
  return fieldsOf(program).flatMap((field) => faultOf(field, program) ?? []);
}

describe('every field has one writer', () => {
  it('in the engine, the tiers, the gate and the pool', () => {
    const program = programOf();
    expect(fieldsOf(program).length).toBeGreaterThan(200);
    expect(faultsOf(program)).toEqual([]);
  }, 120_000);

  it('and the rule sees a second one, one that nobody names, and one that never writes', () => {
    const files = {
      'src/core/owner.ts': `export class Owner {
  own = 0;
  /** Written by Other. */
  lent = 0;
  /** Written by Other. */
  both = 0;
  /** Written by Nobody. */
  idle = 0;
  constructor() { this.lent = 1; }
  step(): void { this.own++; this.both = 2; }
}`,
      'src/core/other.ts': `import type { Owner } from './owner.js';
export class Other {
  write(owner: Owner): void { owner.lent += 1; (owner as Owner).both--; }
}
export function steal(owner: Owner): void { owner.own = 3; }`,
    };
    expect(faultsOf(programOf(files))).toEqual([
      'Owner.own is written in src/core/other.ts',
      'Owner.both says "Written by Other": src/core/owner.ts, src/core/other.ts',
      'Owner.idle says "Written by Nobody": ',
    ]);
  }, 120_000);
});
