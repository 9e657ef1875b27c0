// Writes built-scripts.ts: the scripts of the store in Lua, from the .lua files beside their other forms. The protocol of
// capacity leases is made of src/redis/leases/lease-step.ts, so that both forms of it have one source. git does not know
// what is built: installing makes it, and so does whatever reads the sources, lest it be older than they are.
//
// Only what the step needs is translated; anything else is an error with its line. Values mean the same in both: numbers
// are doubles; what stands before `??` or `:` is never false; and a condition is a boolean, because 0 is true in Lua.
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { transformSync } from 'esbuild';
import ts from 'typescript';
import { bare } from './bare-lua.mjs';

const redis = new URL('../src/redis/', import.meta.url);
const built = new URL('store/built-scripts.ts', redis);
const read = (name) => readFileSync(new URL(name, redis), 'utf8');
const { SyntaxKind: kind } = ts;

const operators = new Map([
  [kind.PlusToken, '+'],
  [kind.MinusToken, '-'],
  [kind.AsteriskToken, '*'],
  [kind.SlashToken, '/'],
  [kind.LessThanToken, '<'],
  [kind.LessThanEqualsToken, '<='],
  [kind.GreaterThanToken, '>'],
  [kind.GreaterThanEqualsToken, '>='],
  [kind.EqualsEqualsEqualsToken, '=='],
  [kind.ExclamationEqualsEqualsToken, '~='],
  [kind.AmpersandAmpersandToken, 'and'],
  [kind.BarBarToken, 'or'],
  [kind.QuestionQuestionToken, 'or'],
]);
const assignments = new Map([
  [kind.PlusEqualsToken, '+'],
  [kind.MinusEqualsToken, '-'],
]);
const math = new Set(['min', 'max', 'floor', 'ceil']);
/** Names that Lua keeps for itself. */
const reserved = new Set(['and', 'end', 'elseif', 'function', 'local', 'nil', 'not', 'or', 'repeat', 'then', 'until']);

/** Lua of the functions of a source file. @throws Error with the line of what it cannot translate */
export function luaOf(text, name = 'lease-step.ts') {
  const file = ts.createSourceFile(name, text, ts.ScriptTarget.ES2022, true);
  const refuse = (node, what) => {
    const line = file.getLineAndCharacterOfPosition(node.getStart()).line + 1;
    throw new Error(`${name}:${line}: ${what ?? kind[node.kind]} has no Lua here: ${node.getText().slice(0, 60)}`);
  };
  const nameOf = (node) => {
    if (!ts.isIdentifier(node) || reserved.has(node.text)) refuse(node, 'this name');
    return node.text;
  };

  function expression(node) {
    if (ts.isIdentifier(node)) return node.text === 'undefined' ? 'nil' : nameOf(node);
    if (ts.isNumericLiteral(node) || node.kind === kind.TrueKeyword || node.kind === kind.FalseKeyword)
      return node.getText();
    if (ts.isParenthesizedExpression(node)) return `(${expression(node.expression)})`;
    if (ts.isPropertyAccessExpression(node)) return `${expression(node.expression)}.${nameOf(node.name)}`;
    if (ts.isElementAccessExpression(node))
      return `${expression(node.expression)}[${expression(node.argumentExpression)}]`;
    if (ts.isArrayLiteralExpression(node)) return `{ ${node.elements.map(expression).join(', ')} }`;
    if (ts.isObjectLiteralExpression(node)) return `{ ${node.properties.map(property).join(', ')} }`;
    if (ts.isPrefixUnaryExpression(node)) {
      if (node.operator === kind.ExclamationToken) return `not ${expression(node.operand)}`;
      if (node.operator === kind.MinusToken) return `-${expression(node.operand)}`;
    }
    if (ts.isBinaryExpression(node)) {
      const operator = operators.get(node.operatorToken.kind) ?? refuse(node, node.operatorToken.getText());
      return `${expression(node.left)} ${operator} ${expression(node.right)}`;
    }
    if (ts.isConditionalExpression(node)) {
      const [condition, yes, no] = [node.condition, node.whenTrue, node.whenFalse].map(expression);
      return `((${condition}) and ${yes} or ${no})`;
    }
    if (ts.isSpreadElement(node) && node.parent.elements?.at(-1) !== node && node.parent.arguments?.at(-1) !== node)
      refuse(node, 'a spread before the end');
    if (ts.isSpreadElement(node)) return `unpack(${expression(node.expression)})`;
    return ts.isCallExpression(node) ? call(node) : refuse(node);
  }
  function property(node) {
    if (ts.isShorthandPropertyAssignment(node)) return `${nameOf(node.name)} = ${nameOf(node.name)}`;
    return ts.isPropertyAssignment(node) ? `${nameOf(node.name)} = ${expression(node.initializer)}` : refuse(node);
  }
  function assigned([target, fields]) {
    if (!ts.isObjectLiteralExpression(fields)) refuse(fields);
    return fields.properties.map((each) => `${expression(target)}.${property(each)}`).join('\n');
  }
  function call({ expression: called, arguments: given }) {
    if (called.getText() === 'Object.assign') return assigned(given);
    const list = given.map(expression);
    if (!ts.isPropertyAccessExpression(called)) return `${expression(called)}(${list.join(', ')})`;
    const [owner, method] = [expression(called.expression), called.name.text];
    if (owner === 'Math' && math.has(method)) return `math.${method}(${list.join(', ')})`;
    if (method === 'push') return list.map((each) => `${owner}[#${owner} + 1] = ${each}`).join('\n');
    if (owner !== 'memory') refuse(called, 'this method');
    return `${owner}.${method}(${list.join(', ')})`;
  }
  function declaration({ name: target, initializer }) {
    const value = initializer === undefined ? 'nil' : expression(initializer);
    if (ts.isIdentifier(target)) return [`local ${nameOf(target)} = ${value}`];
    if (!ts.isObjectBindingPattern(target)) refuse(target);
    const isPlain = ts.isIdentifier(initializer);
    return [...(isPlain ? [] : [`local read = ${value}`]), taken(target, isPlain ? value : 'read')];
  }
  function taken(pattern, from) {
    for (const each of pattern.elements) if (each.initializer ?? each.dotDotDotToken) refuse(each, 'this pattern');
    const names = pattern.elements.map(({ name: target }) => nameOf(target));
    const fields = pattern.elements.map(
      ({ name: target, propertyName }) => `${from}.${nameOf(propertyName ?? target)}`,
    );
    return `local ${names.join(', ')} = ${fields.join(', ')}`;
  }
  function assignment({ left, operatorToken, right }) {
    const target = expression(left);
    if (operatorToken.kind === kind.EqualsToken) return `${target} = ${expression(right)}`;
    const operator = assignments.get(operatorToken.kind) ?? refuse(left, operatorToken.getText());
    const value = expression(right);
    return `${target} = ${target} ${operator} ${ts.isBinaryExpression(right) ? `(${value})` : value}`;
  }
  function statement(node) {
    if (ts.isBlock(node)) return node.statements.flatMap(statement);
    if (ts.isVariableStatement(node)) return node.declarationList.declarations.flatMap(declaration);
    if (ts.isReturnStatement(node) && ts.isBlock(node.parent) && node.parent.statements.at(-1) !== node)
      refuse(node, 'a return before the end');
    if (ts.isReturnStatement(node))
      return [node.expression === undefined ? 'return' : `return ${expression(node.expression)}`];
    if (ts.isIfStatement(node)) return branches(node);
    if (ts.isForOfStatement(node)) return loop(node);
    if (!ts.isExpressionStatement(node)) return refuse(node);
    const { expression: done } = node;
    if (ts.isDeleteExpression(done)) return [`${expression(done.expression)} = nil`];
    if (ts.isBinaryExpression(done)) return [assignment(done)];
    return ts.isCallExpression(done) ? call(done).split('\n') : refuse(node);
  }
  function branches({ expression: condition, thenStatement, elseStatement }, word = 'if') {
    const first = [`${word} ${expression(condition)} then`, ...inside(statement(thenStatement))];
    if (elseStatement === undefined) return [...first, 'end'];
    if (ts.isIfStatement(elseStatement)) return [...first, ...branches(elseStatement, 'elseif')];
    return [...first, 'else', ...inside(statement(elseStatement)), 'end'];
  }
  function loop({ initializer, expression: list, statement: body }) {
    const [{ name: target }] = initializer.declarations;
    const isName = ts.isIdentifier(target);
    const lines = [...(isName ? [] : [taken(target, 'each')]), ...statement(body)];
    return [`for _, ${isName ? nameOf(target) : 'each'} in ipairs(${expression(list)}) do`, ...inside(lines), 'end'];
  }
  const inside = (lines) => lines.map((line) => `  ${line}`);

  const functions = file.statements.filter(ts.isFunctionDeclaration).map(({ name: own, parameters, body }) => {
    const names = parameters.map((each) => nameOf(each.name));
    return [`local function ${nameOf(own)}(${names.join(', ')})`, ...inside(statement(body)), 'end'].join('\n');
  });
  return `${functions.join('\n\n')}\n`;
}

/** The lists of names that a source file exports, as Lua. */
async function listsOf(text) {
  const { code } = transformSync(text, { loader: 'ts', format: 'esm' });
  const names = Object.entries(await import(`data:text/javascript,${encodeURIComponent(code)}`));
  return names.filter(([, value]) => Array.isArray(value)).map(([name, value]) => [name, `'${value.join("', '")}'`]);
}

export async function writeStoreScripts() {
  const step = read('leases/lease-step.ts');
  let leases = read('leases/leases.lua').replace('--[[step]]', () => luaOf(step));
  for (const [name, list] of await listsOf(step)) leases = leases.replaceAll(`--[[${name}]]`, list);
  const [clock, finite] = [read('store/clock.lua'), read('store/finite.lua')];
  const scripts = {
    leases: bare(clock + finite + leases),
    buckets: bare(finite + read('buckets/buckets.lua')),
    exchange: bare(clock + read('fairness/exchange.lua')),
  };
  const text = `/** Built by scripts/build-store-scripts.mjs. */\nexport const builtScripts: Readonly<Record<'leases' | 'buckets' | 'exchange', string>> = ${JSON.stringify(scripts)};\n`;
  if (existsSync(built) && readFileSync(built, 'utf8') === text) return;
  // Others may be reading it.
  const unfinished = new URL(`built-scripts.${process.pid}.tmp`, built);
  writeFileSync(unfinished, text);
  renameSync(unfinished, built);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await writeStoreScripts();
