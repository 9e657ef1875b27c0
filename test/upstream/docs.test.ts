/** docs/endpoints.md: its examples work as printed, and its tables name every profile and failure; docs/options.md has every option. */
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { metricProfiles } from '../../src/upstream/index.js';
import { vllm } from './scraping/expositions.js';
import { modelServer } from './scraping/model-server.js';
import { chatStream, chatUsage } from './usage/streams.js';

const root = new URL('../../', import.meta.url);
/** Inside the package, so that the snippets' imports resolve as a user's would, by the package's own name. */
const scratch = new URL('test-results/endpoint-snippets/', root);
const page = readFileSync(new URL('docs/endpoints.md', root), 'utf8');
const optionsOf = (maker: string): string =>
  readFileSync(new URL('docs/options.md', root), 'utf8')
    .split(/^##+ /m)
    .find((section) => section.startsWith(`\`${maker}(`)) ?? '';
const snippets = [...page.matchAll(/(<!-- run by .*? -->\n)?```js\n(.*?)```/gs)].map(([, marker, code = '']) => ({
  isRun: marker !== undefined,
  code,
}));

beforeAll(() => mkdirSync(scratch, { recursive: true }));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

async function load(name: string, code: string): Promise<Record<string, unknown>> {
  const file = new URL(`${name}.mjs`, scratch);
  writeFileSync(file, code);
  return import(/* @vite-ignore */ pathToFileURL(fileURLToPath(file)).href);
}

function membersOf(type: string, file: string): string[] {
  const source = readFileSync(new URL(file, root), 'utf8');
  const body = new RegExp(`^export interface ${type}\\b[^{]*\\{\\n(.*?)^\\}`, 'ms').exec(source)?.[1] ?? '';
  return [...body.matchAll(/^ {2}(?:readonly )?(\w+)[?]?[:(]/gm)].map(([, name = '']) => name);
}

describe('docs/endpoints.md', () => {
  it.each(snippets.filter(({ isRun }) => isRun).map(({ code }, index) => [index + 1, code] as const))(
    'has an example %i that works as printed',
    async (index, code) => {
      const { address } = await modelServer(vllm({ waiting: 0, kv: 0.1 }));
      const upstream = new Response(chatStream(chatUsage)).body;
      const { test } = (await load(`run-${index}`, code)) as { test(...given: unknown[]): Promise<void> };
      await test(assert, address, upstream);
    },
  );

  it('has other examples that start', async () => {
    const others = snippets.filter(({ isRun }) => !isRun);
    expect(others).toHaveLength(5);
    const { address } = await modelServer(vllm());
    const given = `import { EndpointPool as Pool } from 'headgate/endpoints';\nconst lease = { endpoint: 'gpu-0', signal: undefined }, url = 'http://${address}', body = '';\n`;
    for (const [index, { code }] of others.entries()) {
      const pool = code.includes('new EndpointPool') ? '' : 'const pool = new Pool();\n';
      await load(`start-${index}`, given + pool + code.replace(/const body.*\n/, ''));
    }
  });

  it('names every option of scrape', () => {
    const names = membersOf('ScrapeOptions', 'src/upstream/scraping/scrape-options.ts');
    expect(names.length).toBeGreaterThan(12);
    for (const name of names) expect(optionsOf('scrape')).toMatch(new RegExp(`^\\|.*\`${name}[\`(]`, 'm'));
  });

  it('names every option of watchHealth', () => {
    const names = membersOf('HealthOptions', 'src/upstream/health/health-watch.ts');
    expect(names.length).toBeGreaterThan(7);
    for (const name of names) expect(optionsOf('watchHealth')).toMatch(new RegExp(`^\\|.*\`${name}[\`(]`, 'm'));
  });

  it('names every metric of every profile', () => {
    for (const [profile, sources] of Object.entries(metricProfiles)) {
      const row = page.split('\n').find((line) => line.startsWith(`| \`${profile}\` |`)) ?? '';
      const { waitingQueueSize, runningRequests, kvCacheUsage } = sources;
      for (const source of [waitingQueueSize, runningRequests].flat())
        expect(row).toContain(String(source).replace(/\{.*/, ''));
      expect(row).toContain(String([kvCacheUsage].flat()[0]).replace(/\{.*/, ''));
    }
  });

  it('names every failure', () => {
    const union =
      /export type ScrapeFailure = (.*?);/.exec(readFileSync(new URL('src/upstream/asking.ts', root), 'utf8'))?.[1] ??
      '';
    const codes = [...union.matchAll(/'([\w-]+)'/g)].map(([, code = '']) => code);
    expect(codes.length).toBeGreaterThan(5);
    for (const code of codes) expect(page).toContain(`| \`${code}\` |`);
  });
});
