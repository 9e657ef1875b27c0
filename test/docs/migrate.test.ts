/** docs/migrate.md: its files load, without faults and without warnings. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { loadGatewayConfig } from '../../src/gateway/index.js';

const page = readFileSync(new URL('../../docs/migrate.md', import.meta.url), 'utf8');
const sections = page.split(/^## /m).slice(1);
const files = sections.flatMap((section) =>
  [...section.matchAll(/<!-- loaded by test\/docs\/migrate\.test\.ts -->\n```yaml\n(.*?)```/gs)].map(
    ([, text = '']) => [section.split('\n')[0]!, text] as const,
  ),
);

describe('the page of those who come from elsewhere', () => {
  it('has sections with an outline in common: what is different, and what is lost', () => {
    expect(sections).toHaveLength(4);
    for (const section of sections) expect(section).toMatch(/^### What is lost$/m);
  });

  it('has files that are loaded, all of them', () => {
    const [liteLlm, llmD] = ["LiteLLM's scheduler", "llm-d's EPP configuration"];
    expect(files.map(([section]) => section)).toEqual([liteLlm, llmD]);
    expect(page.match(/```ya?ml\n/g)).toHaveLength(files.length);
  });

  it.each(files)('%s: its file loads', (_, text) => {
    expect(loadGatewayConfig(text).warnings).toEqual([]);
  });
});
