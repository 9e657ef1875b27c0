/**
 * The tables of options in code. Keys, sentences and defaults are those of the public interfaces; what an option takes
 * is told in the words of the error that a wrong value gets.
 */
import { readdirSync, readFileSync } from 'node:fs';
import ts from 'typescript';
import { type ConfigIssue, FlowConfigError } from '../../src/index.js';
import { type Row, textOf } from './option-rows.js';

const src = new URL('../../src/', import.meta.url);

/** Options of one function or class. */
export interface OptionSet {
  /** As it is called. */
  readonly title: string;
  /** The name of the interface. */
  readonly options: string;
  /** Reads options, or throws. */
  readonly read: (options: object) => unknown;
}

interface Member {
  readonly name: string;
  readonly sentence: string;
  readonly otherwise: string;
  readonly isRequired: boolean;
  readonly type: ts.TypeNode | undefined;
  /** The interface that declares it. */
  readonly owner: string;
}

/** The exported interfaces of src. */
const interfaces: ts.InterfaceDeclaration[] = readdirSync(src, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts') && !name.includes('page'))
  .map((name) => ts.createSourceFile(name, readFileSync(new URL(name, src), 'utf8'), ts.ScriptTarget.Latest, true))
  .flatMap(({ statements }) => statements.filter(ts.isInterfaceDeclaration))
  .filter((declaration) => declaration.modifiers !== undefined);

/** That of the same file comes first. */
function declarationOf(name: string, near?: ts.Node): ts.InterfaceDeclaration | undefined {
  const named = interfaces.filter((declaration) => declaration.name.text === name);
  return named.find((declaration) => declaration.getSourceFile() === near?.getSourceFile()) ?? named[0];
}

/** Its own members, then those that it inherits. */
function membersOf(declaration: ts.InterfaceDeclaration): Member[] {
  const own = declaration.members.flatMap((member) =>
    ts.isPropertySignature(member) && ts.isIdentifier(member.name)
      ? [memberOf(member, member.name.text, declaration.name.text)]
      : [],
  );
  const inherited = (declaration.heritageClauses ?? []).flatMap(({ types }) => types).flatMap(inheritedFrom);
  return [...own, ...inherited];
}

function memberOf(member: ts.PropertySignature, name: string, owner: string): Member {
  const raw = ts.getJSDocCommentsAndTags(member).map((comment) => comment.getText())[0] ?? '';
  const comment = raw.replace(/^\/\*\*|\*\/$/g, '').replace(/^\s*\* ?/gm, ' ');
  const [told = '', ...tags] = comment.replace(/\s+/g, ' ').split(/ ?@(?=[a-z]+ )/);
  const otherwise = tags.find((tag) => tag.startsWith('default '))?.slice('default '.length);
  return {
    name,
    sentence: shortened(told.trim()),
    otherwise: otherwise === undefined ? '' : codeOf(otherwise.trim()),
    isRequired: member.questionToken === undefined,
    type: member.type,
    owner,
  };
}

/** The first sentence, and those that tell what a word means: "`reject`: the newcomer is dropped." */
function shortened(text: string): string {
  const [first = '', ...others] = text.match(/.+?[.](?= [A-Z`]|$)/g) ?? [text];
  return [first, ...others.filter((sentence) => /^ ?`[\w()-]+`(?: or `[\w()-]+`)?:/.test(sentence))].join('');
}

/** Values are set as code, and words as they are. */
function codeOf(text: string): string {
  const values =
    /'[^' ]*'(?! s)|\b\w+\([^)]*\)|^[\d.,_]+$|^(?:true|false|Infinity|\[\]|Math\.random|Date\.now|realClock)$/g;
  const parts = text.replace(/\.$/, '').split(/(`[^`]*`)/);
  return parts.map((part, index) => (index % 2 === 0 ? part.replaceAll(values, '`$&`') : part)).join('');
}

/** `Base`, or `Omit<Base, 'one' | 'other'>`. */
function inheritedFrom(clause: ts.ExpressionWithTypeArguments): Member[] {
  const [base, omitted] = clause.typeArguments ?? [];
  const name = clause.expression.getText();
  const declaration = declarationOf(name === 'Omit' ? (base?.getText() ?? '') : name, clause);
  const names = name === 'Omit' ? (omitted?.getText() ?? '') : '';
  return declaration === undefined
    ? []
    : membersOf(declaration).filter((member) => !names.includes(`'${member.name}'`));
}

/** The interface of options that a type names. */
function interfaceIn(type: ts.TypeNode | undefined): ts.InterfaceDeclaration | undefined {
  const names = type?.getText().match(/\b[A-Z]\w+(?:Options|Template|Settings|Timeouts|Retry|Bounds|Budget)\b/g) ?? [];
  return names.map((name) => declarationOf(name, type)).find((declaration) => declaration !== undefined);
}

const nothingTakesIt = Symbol();

/** Where options stand in other options: `bands[].limits` is told as `['bands', '[]', 'limits']`. */
type Path = readonly string[];

/** The interfaces that were told of, and where. */
export type Told = Map<string, string>;

/** The rows of a set. What another set has told of is referred to. */
export function rowsOf(set: OptionSet, told: Told): Row[] {
  const top = declarationOf(set.options);
  if (top === undefined) throw new Error(`expected an exported interface; got ${set.options}`);
  return rowsBelow(top, []);

  function rowsBelow(declaration: ts.InterfaceDeclaration, path: Path): Row[] {
    const members = membersOf(declaration);
    const unknown = issueOf([...path, ''], 0)?.expected.replace(/^one of the keys (.*?)(?: \(did.*)?$/, '$1');
    const keys = unknown?.split(', ') ?? [];
    const missing = keys.filter((key) => !members.some((member) => member.name === key));
    if (keys.length === 0) throw new Error(`${set.title}: expected an error that names the keys`);
    if (missing.length > 0)
      throw new Error(`${set.title}: expected ${declaration.name.text} to have ${missing.join(', ')}`);
    const [known, fresh] = [keys.filter((key) => isTold(key)), keys.filter((key) => !isTold(key))];
    for (const owner of new Set(members.map((member) => member.owner))) {
      if (!told.has(owner)) told.set(owner, path.length === 0 ? set.title : shown(path));
    }
    return [...fresh.flatMap((key) => rowsFor(members.find((member) => member.name === key)!, path)), ...asBefore()];

    function isTold(key: string): boolean {
      const owner = members.find((member) => member.name === key)?.owner ?? '';
      return told.has(owner);
    }

    function asBefore(): Row[] {
      if (known.length === 0) return [];
      const owners = new Set(members.filter((member) => known.includes(member.name)).map((member) => member.owner));
      const [where = ''] = [...owners].map((owner) => told.get(owner) ?? '');
      const key = known.map((each) => `\`${shown([...path, each])}\``).join(', ');
      return [{ key, takes: '', otherwise: '', sentence: `As in ${where}.` }];
    }
  }

  function rowsFor(member: Member, path: Path): Row[] {
    const at = [...path, member.name];
    const head = { key: `\`${shown(at)}\``, ...aboutOf(member, at) };
    const inside = interfaceIn(member.type);
    const below = inside && [at, [...at, '[]'], [...at, 'NAME']].find((deeper) => isObject([...deeper, '']));
    if (below === undefined || inside === undefined) return [head];
    const fields = membersOf(inside);
    if (fields.every(({ sentence }) => sentence === '')) {
      const [first = ''] = fields.map(({ name }) => issueOf([...below, name], nothingTakesIt)?.expected);
      return [{ ...head, takes: `\`{ ${fields.map(({ name }) => name).join(', ')} }\`, each ${first}` }];
    }
    const before = told.get(inside.name.text);
    if (before !== undefined) return [{ ...head, sentence: textOf(head.sentence, `As ${before}.`) }];
    return [...(head.sentence === '' ? [] : [{ ...head, takes: '' }]), ...rowsBelow(inside, below)];
  }

  function aboutOf({ sentence, otherwise, isRequired }: Member, path: Path): Omit<Row, 'key'> {
    const takes = issueOf(path, nothingTakesIt)?.expected;
    if (takes === undefined) return { takes: '', otherwise, sentence };
    return { takes, otherwise: isRequired ? 'required' : otherwise, sentence };
  }

  function isObject(path: Path): boolean {
    return issueOf(path, 0)?.got === 'an unknown key';
  }

  /** What is said of `value` in that place. */
  function issueOf(path: Path, value: unknown): ConfigIssue | undefined {
    const options = path.reduceRight<unknown>((inner, key) => (key === '[]' ? [inner] : { [key]: inner }), value);
    const where = path.map((key) => (key === '[]' ? '[0]' : key === '' ? '[""]' : `.${key}`)).join('');
    try {
      set.read(options as object);
    } catch (error) {
      if (!(error instanceof FlowConfigError)) throw error;
      return error.issues.find((issue) => `.${issue.path}`.replace(/^\.\[/, '[') === where);
    }
    return undefined;
  }
}

function shown(path: Path): string {
  return path.reduce((text, key) => (key === '[]' ? `${text}[]` : text === '' ? key : `${text}.${key}`), '');
}
