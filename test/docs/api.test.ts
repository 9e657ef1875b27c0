/** docs/api.md names everything that its tables promise, and the pages around it lead somewhere. */
import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { makeFlow } from '../support/flow.js';

const root = new URL('../../', import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, root), 'utf8');
const page = read('docs/api.md');

/** The members of an interface, as its declaration has them. */
function membersOf(file: string, name: string): string[] {
  const [, body = ''] = new RegExp(`export interface ${name}[^{]*\\{\\n(.*?)\\n\\}`, 's').exec(read(file)) ?? [];
  return [...body.matchAll(/^ {2}(?:readonly )?(\w+)\??[(:]/gm)].map(([, member]) => member as string);
}

describe('docs/api.md', () => {
  it('has every reason of a drop', () => {
    const [, union = ''] = /export type DropReason =\n(.*?);/s.exec(read('src/core/outcome/outcome.ts'))!;
    const reasons = [...union.matchAll(/'([\w-]+)'/g)]
      .map(([, reason]) => reason as string)
      .filter((reason) => !/^(scope|resource)$/.test(reason));
    const limits = ['global', 'band', 'flow'].flatMap((scope) => [`${scope}-max-requests`, `${scope}-max-bytes`]);
    expect(reasons.length).toBeGreaterThan(8);
    expect([...reasons, ...limits].filter((reason) => !page.includes(`\`${reason}\``))).toEqual([]);
  });

  it.each([
    ['src/core/outcome/lease.ts', 'Lease'],
    ['src/core/flow-request.ts', 'FlowRequest'],
    ['src/tiers/views.ts', 'ItemView'],
    ['src/tiers/views.ts', 'FlowView'],
    ['src/tiers/views.ts', 'BandView'],
    ['src/tiers/views.ts', 'Usage'],
  ])('has every member of %s, %s', (file, name) => {
    const members = membersOf(file, name);
    expect(members.length).toBeGreaterThan(1);
    expect(members.filter((member) => !new RegExp(`\`[^\`]*\\b${member}\\b`).test(page))).toEqual([]);
  });

  it('has every method and every event of the controller', () => {
    const { flow } = makeFlow();
    const members = Object.entries(Object.getOwnPropertyDescriptors(Object.getPrototypeOf(flow))).filter(
      ([name]) => name !== 'constructor',
    );
    // A property that is read stands there by its name alone.
    const named = members.map(([name, { get }]) => (get === undefined ? `\`${name}(` : `\`${name}\``));
    expect(named.filter((name) => !page.includes(name))).toEqual([]);
    const events = [...read('src/core/events.ts').matchAll(/^ {4}(\w+): false,$/gm)].map(
      ([, event]) => event as string,
    );
    expect(events.length).toBeGreaterThan(10);
    expect(events.filter((event) => !page.includes(`\`${event}\``))).toEqual([]);
  });
});

describe.each(['getting-started', 'api', 'capacity', 'troubleshooting', 'deployment', 'concepts'])(
  'docs/%s.md',
  (name) => {
    it('has links that lead to a page, and to a heading of it', () => {
      const links = [...read(`docs/${name}.md`).matchAll(/\]\(([\w./-]+\.md)(?:#([\w-]+))?\)/g)];
      const lost = links.filter(([, target = '', heading]) => {
        const url = new URL(target, new URL('docs/', root));
        if (!existsSync(url)) return true;
        const anchors = [...readFileSync(url, 'utf8').matchAll(/^#+ (.+)$/gm)].map(([, text = '']) =>
          text
            .toLowerCase()
            .replaceAll(/[^\w\s-]/g, '')
            .trim()
            .replaceAll(/\s/g, '-'),
        );
        return heading !== undefined && !anchors.includes(heading);
      });
      expect(lost.map(([link]) => link)).toEqual([]);
    });
  },
);
