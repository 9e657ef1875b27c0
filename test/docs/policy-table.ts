/** The table of all built-in policies, made of the registry and of each policy's page. */
import type { PluginRegistry } from '../../src/index.js';
import { nounOf } from '../../src/plugins/kinds.js';
import type { ConfigurableKind } from '../../src/types/index.js';

const kinds: readonly ConfigurableKind[] = [
  'fairness',
  'ordering',
  'saturationDetector',
  'constraint',
  'usageLimit',
  'bandOrder',
  'evictionFilter',
  'evictionOrdering',
  'endpointPicker',
  'endpointFilter',
  'admission',
];

/** Types that are told of in the page of another one, in a row of a table there. */
const presets: Readonly<Record<string, string>> = {
  'interpolated-usage-limit-policy': 'priority-holdback-policy',
  'largest-footprint-eviction-order-policy': 'priority-then-time-eviction-order-policy',
  'least-progress-eviction-order-policy': 'priority-then-time-eviction-order-policy',
  'least-service-fairness-policy': 'virtual-token-counter-fairness-policy',
  'mean-saturation-detector': 'max-saturation-detector',
  'reject-all': 'always-admit',
  'start-time-fair-queueing-fairness-policy': 'virtual-token-counter-fairness-policy',
};

/** The page of a type, without `.md`. */
export const pageOf = (type: string): string => presets[type] ?? type;

const begin = '<!-- policies: made by test/docs/policies.test.ts -->\n';
const end = '\n<!-- /policies -->';

/** `page` with the table between its two marks brought up to date. `read` gets the page of a type. */
export function withPolicyTable(page: string, registry: PluginRegistry, read: (type: string) => string): string {
  const start = page.indexOf(begin) + begin.length;
  const rows = kinds.map((kind) => {
    const policies = registry.types(kind).map((type) => {
      const page = read(pageOf(type));
      const code = pageOf(type) === type ? codeOf(type, page) : presetCodeOf(type, page);
      return `${code} [${type}](${pageOf(type)}.md)`;
    });
    return `| ${nounOf(kind).replace(/^an? /, '')} | ${policies.join(', ')} |`;
  });
  const head = ['| kind | in code, and in files |', '|---|---|'];
  return page.slice(0, start) + [...head, ...rows].join('\n') + page.slice(page.indexOf(end));
}

/** The factory that a page begins with. */
function codeOf(type: string, page: string): string {
  const paragraphs = page.split('\n\n').map((paragraph) => paragraph.replaceAll('\n', ' '));
  const introduction = paragraphs[1] ?? '';
  const [, what, code] = /^(.*?)\. In code `(\w+)/.exec(introduction) ?? [];
  const hasCost = paragraphs.some((paragraph) => /(?:^|\. )Cost: ./.test(paragraph));
  const isDefault = /; the default|in files the default/.test(introduction) ? ' (default)' : '';
  if (what === undefined || code === undefined || !hasCost) {
    throw new Error(
      `expected docs/policies/${type}.md to begin with what it does and "In code", and to have a line "Cost:"`,
    );
  }
  return `\`${code}\`${isDefault}`;
}

/** Of a table in the page of what it is a preset of. */
function presetCodeOf(type: string, page: string): string {
  const [, code] = new RegExp(`^\\| \`(\\w+)[^|]*\` \\| \`${type}\` \\|`, 'm').exec(page) ?? [];
  if (code === undefined) throw new Error(`expected docs/policies/${pageOf(type)}.md to have a row of \`${type}\``);
  return `\`${code}\``;
}
