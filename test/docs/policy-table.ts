/** The table of all built-in policies, made of the registry and of each policy's page. */
import type { ConfigurableKind, PluginRegistry } from '../../src/index.js';
import { nounOf } from '../../src/plugins/kinds.js';

const kinds: readonly ConfigurableKind[] = [
  'fairness',
  'ordering',
  'saturationDetector',
  'usageLimit',
  'bandOrder',
  'evictionFilter',
  'evictionOrdering',
  'endpointPicker',
  'endpointFilter',
  'admission',
];

const begin = '<!-- policies: made by test/docs/policies.test.ts -->\n';
const end = '\n<!-- /policies -->';

/** `page` with the table between its two marks brought up to date. `read` gets the page of a type. */
export function withPolicyTable(page: string, registry: PluginRegistry, read: (type: string) => string): string {
  const start = page.indexOf(begin) + begin.length;
  const rows = kinds.flatMap((kind) => {
    const noun = nounOf(kind).replace(/^an? /, '');
    return registry.types(kind).map((type, index) => row(index === 0 ? noun : '', type, read(type)));
  });
  const head = ['| kind | in code | in files | what it does | cost |', '|---|---|---|---|---|'];
  return page.slice(0, start) + [...head, ...rows].join('\n') + page.slice(page.indexOf(end));
}

function row(kind: string, type: string, page: string): string {
  const paragraphs = page.split('\n\n').map((paragraph) => paragraph.replaceAll('\n', ' '));
  const introduction = paragraphs[1] ?? '';
  const what = /^(.*?)\. In code /.exec(introduction)?.[1];
  const code = /In code (`[^`]+`(?: or `[^`]+`)?)/.exec(introduction)?.[1];
  const cost = paragraphs.flatMap((paragraph) => /(?:^|\. )Cost: (.*?)(?:\.(?: |$)|$)/.exec(paragraph)?.[1] ?? [])[0];
  const isDefault = /; the default|in files the default/.test(introduction) ? ' (default)' : '';
  if (what === undefined || code === undefined || cost === undefined) {
    throw new Error(
      `expected docs/policies/${type}.md to begin with what it does and "In code", and to have a line "Cost:"`,
    );
  }
  return `| ${[kind, code + isDefault, `[${type}](${type}.md)`, what, cost].join(' | ')} |`;
}
