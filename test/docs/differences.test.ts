/**
 * The lists of names in docs/differences.md map every name of the documents that headgate answers to, and its own names exist. The documents are
 * not part of the repository: mission-names.json is the list of what they name, and is held against them where they lie
 * beside the checkout.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { type Drop, explainDrop } from '../../src/index.js';
import { drops } from '../adapters/http/drops.js';
import { publicNames } from '../support/public-names.js';
import mission from './mission-names.json' with { type: 'json' };

interface Row {
  readonly theirs: readonly string[];
  readonly ours: string;
  /** The names in `ours`; where it says `the same`, theirs are among them. */
  readonly answers: readonly string[];
  readonly note: string;
}

/** Section of the page → title of the document that it answers to. */
const titles: Readonly<Record<string, keyof typeof mission.names>> = {
  "llm-d's flow control": 'Flow Control',
  "llm-d's headers": 'EPP HTTP Headers Reference',
  BLIS: 'Admission Control',
  Dynamo: 'Request Rejection',
};

const documents = new URL('../../../shared/seeds/', import.meta.url);

function codeIn(text: string): string[] {
  return [...text.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code);
}

function rowsOf(section: string): Row[] {
  return [...section.matchAll(/^\| (\[?`.*?) \| (.*) \|$/gm)].map(([, left = '', right = '']) => {
    const theirs = codeIn(left);
    const [, ours = '', note = ''] = /^((?:`[^`]*`|[^`:])*)(?:: (.*))?$/.exec(right) ?? [];
    const answers = [...(ours.startsWith('the same') ? theirs : []), ...codeIn(ours)];
    return { theirs, ours, answers, note };
  });
}

const page = readFileSync(new URL('../../docs/differences.md', import.meta.url), 'utf8');
const sections = new Map(
  page
    .split(/^## /m)
    .filter((section) => section.startsWith('Names: '))
    .map((section) => section.slice('Names: '.length))
    .map((section) => [section.slice(0, section.indexOf('\n')), rowsOf(section)]),
);
const rows = [...sections.values()].flat();
const names: readonly string[] = Object.values(mission.names).flat();

/** What looks like a name in prose: flags, fields, headers, plugin types, reasons, types. */
const shapes = [
  /(?<![\w-])--[a-z][a-z-]*[a-z]/g,
  /\b[a-z]+(?:_[a-z0-9]+)+\b/g,
  /(?<![\w-])x-[a-z-]*[a-z]/g,
  /\b[a-z]+(?:-[a-z]+)*-(?:policy|detector)\b/g,
  /\b(?:rejected|evicted)-[a-z-]*[a-z]/g,
  /\b[A-Za-z]*[a-z][A-Z][A-Za-z]*\b/g,
];

/** In the documents' text, words run into one another where markup was. */
function isCovered(word: string): boolean {
  return (
    mission.notNames.includes(word) ||
    names.some((name) => name.length > 3 && (name.includes(word) || word.includes(name)))
  );
}

describe('docs/differences.md', () => {
  it('has a list of names for each document', () => {
    expect([...sections.keys()]).toEqual(Object.keys(titles));
    expect(rows.length).toBeGreaterThan(100);
  });

  it.each(Object.entries(titles))('%s: names what its document names, all of it', (section, title) => {
    const theirs = (sections.get(section) ?? []).flatMap((row) => row.theirs);
    expect([...new Set(theirs)].sort()).toEqual([...mission.names[title]].sort());
  });

  it('answers with names that exist', () => {
    const known = publicNames();
    const unknown = rows
      .flatMap(({ answers }) => answers)
      .flatMap((code) => {
        const words = known.has(code) ? [code] : code.split(/[^\w-]+/).filter((word) => word !== '');
        return words.filter((word) => !known.has(word));
      });
    expect(unknown).toEqual([]);
  });

  it('says why where it has no name', () => {
    for (const { theirs, ours, answers, note } of rows) {
      if (answers.length > 0) continue;
      expect(ours, theirs.join()).toBe('none');
      expect(note, theirs.join()).not.toBe('');
    }
  });

  it.each<[string, Drop]>([
    ['RejectedCapacity', drops.capacity],
    ['EvictedTTL', drops.ttl],
    ['EvictedContextCancelled', drops.gone],
    ['RejectedOther', drops.shutdownRejected],
    ['EvictedOther', drops.shutdownEvicted],
  ])('has the status of %s right', (type, drop) => {
    const row = rows.find(({ ours }) => ours === `\`${type}\``);
    expect(row?.note.slice(0, 3)).toBe(String(explainDrop(drop).status));
  });
});

describe.skipIf(!existsSync(documents))('the documents', () => {
  const texts = (existsSync(documents) ? readdirSync(documents) : [])
    .filter((file) => file.endsWith('.txt'))
    .map((file) => readFileSync(new URL(file, documents), 'utf8'));

  it.each(Object.entries(mission.names))('%s: has the names that are listed', (title, listed) => {
    const text = texts.filter((document) => document.slice(0, 80).includes(title)).join('\n');
    expect(listed.filter((name) => !text.includes(name))).toEqual([]);
  });

  it('have no other names', () => {
    const words = texts.flatMap((text) => shapes.flatMap((shape) => text.match(shape) ?? []));
    expect(words.length).toBeGreaterThan(200);
    expect([...new Set(words)].filter((word) => !isCovered(word))).toEqual([]);
  });
});
