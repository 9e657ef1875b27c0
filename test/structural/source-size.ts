/** How large sources are: what `ceilings.test.ts` bounds, in one walk over each file. */
import { posix } from 'node:path';
import ts from 'typescript';

/** One class or function, and how much of something it has. */
export interface Part {
  /** `core/engine/seats.ts SeatLease`: the file, and what is named nearest. */
  readonly name: string;
  readonly size: number;
}

export interface SourceSize {
  readonly file: string;
  readonly lines: number;
  /** The comment that opens the file, in one line. */
  readonly header: string;
  /** `as` that is not `as const`. */
  readonly casts: number;
  /** Fields, methods and accessors, the constructor included. */
  readonly classMembers: readonly Part[];
  /** From the first line of a function to its last, with all that is inside. */
  readonly functionLines: readonly Part[];
  /** Ways through a function: 1, and 1 more for each branch. Functions inside count for themselves. */
  readonly functionPaths: readonly Part[];
}

const branches: ReadonlySet<ts.SyntaxKind> = new Set([
  ts.SyntaxKind.IfStatement,
  ts.SyntaxKind.ConditionalExpression,
  ts.SyntaxKind.ForStatement,
  ts.SyntaxKind.ForInStatement,
  ts.SyntaxKind.ForOfStatement,
  ts.SyntaxKind.WhileStatement,
  ts.SyntaxKind.DoStatement,
  ts.SyntaxKind.CaseClause,
  ts.SyntaxKind.CatchClause,
]);

const branchingOperators: ReadonlySet<ts.SyntaxKind> = new Set([
  ts.SyntaxKind.AmpersandAmpersandToken,
  ts.SyntaxKind.AmpersandAmpersandEqualsToken,
  ts.SyntaxKind.BarBarToken,
  ts.SyntaxKind.BarBarEqualsToken,
  ts.SyntaxKind.QuestionQuestionToken,
  ts.SyntaxKind.QuestionQuestionEqualsToken,
]);

const isBranch = (node: ts.Node): boolean =>
  branches.has(node.kind) || (ts.isBinaryExpression(node) && branchingOperators.has(node.operatorToken.kind));

const isCast = (node: ts.Node): boolean =>
  ts.isAsExpression(node) && !(ts.isTypeReferenceNode(node.type) && nameOf(node.type.typeName) === 'const');

const nameOf = (node: ts.Node | undefined): string | undefined =>
  node !== undefined && (ts.isIdentifier(node) || ts.isPrivateIdentifier(node) || ts.isStringLiteral(node))
    ? node.text
    : undefined;

/** The name that a declaration gives, or a property of a literal. */
function declaredName(node: ts.Node): string | undefined {
  if (ts.isConstructorDeclaration(node)) return 'constructor';
  const isNamed =
    ts.isFunctionLike(node) ||
    ts.isClassLike(node) ||
    ts.isVariableDeclaration(node) ||
    ts.isPropertyAssignment(node) ||
    ts.isInterfaceDeclaration(node) ||
    ts.isTypeAliasDeclaration(node);
  return isNamed ? nameOf(node.name) : undefined;
}

export function sizeOf(file: string, text: string): SourceSize {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest);
  const lineAt = (position: number): number => source.getLineAndCharacterOfPosition(position).line;
  const classMembers: Part[] = [];
  const functionLines: Part[] = [];
  const functionPaths: Part[] = [];
  let casts = 0;

  /** Returns the branches in `node` that are in no function of its own. */
  const walk = (node: ts.Node, outerName: string): number => {
    const name = declaredName(node) ?? outerName;
    const part = (size: number): Part => ({ name: `${file} ${name}`, size });
    if (isCast(node)) casts += 1;
    if (ts.isClassLike(node)) classMembers.push(part(node.members.length));
    let paths = isBranch(node) ? 1 : 0;
    ts.forEachChild(node, (child) => {
      paths += walk(child, name);
    });
    if (!ts.isFunctionLike(node) || !('body' in node) || node.body === undefined) return paths;
    functionLines.push(part(lineAt(node.end) - lineAt(node.getStart(source)) + 1));
    functionPaths.push(part(1 + paths));
    return 0;
  };
  walk(source, '');

  return {
    file,
    lines: text.split('\n').length - 1,
    header: /^\/\*\*[\s\S]*?\*\//.exec(text)?.[0].replaceAll(/\s*\n \*\s*/g, ' ') ?? '',
    casts,
    classMembers,
    functionLines,
    functionPaths,
  };
}

/** The names that a module hands on, those of the modules that it hands on whole included. `read` gives their text. */
export function exportedNames(module: string, read: (module: string) => string): readonly string[] {
  const { statements } = ts.createSourceFile(module, read(module), ts.ScriptTarget.Latest);
  return statements.flatMap((statement): readonly string[] => {
    if (!ts.isExportDeclaration(statement)) {
      if (!ts.canHaveModifiers(statement)) return [];
      const isExported = ts.getModifiers(statement)?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword) === true;
      if (!isExported) return [];
      const declarations = ts.isVariableStatement(statement) ? statement.declarationList.declarations : [statement];
      return declarations.flatMap((each) => declaredName(each) ?? []);
    }
    const { exportClause, moduleSpecifier } = statement;
    if (exportClause !== undefined && ts.isNamedExports(exportClause))
      return exportClause.elements.map((element) => element.name.text);
    if (exportClause !== undefined) return [exportClause.name.text];
    const from = posix.join(posix.dirname(module), nameOf(moduleSpecifier)?.replace(/\.js$/, '.ts') ?? '');
    return exportedNames(from, read);
  });
}
