/**
 * docs/metrics.md names every metric with its type and labels, every instrument, attribute and channel, and nothing
 * else.
 */
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FlowConfigError } from '../../src/index.js';
import * as instruments from '../../src/observability/opentelemetry/instruments.js';
import { observables } from '../../src/observability/opentelemetry/observables.js';
import { dynamoRejections, families } from '../../src/observability/prometheus/families.js';
import { prometheusMetrics } from '../../src/observability/prometheus/index.js';
import { workerFamilies } from '../../src/observability/prometheus/worker-metrics.js';
import { makeFlow } from '../support/flow.js';
import mission from './mission-names.json' with { type: 'json' };

const root = new URL('../../', import.meta.url);
/** Inside the package, so that the snippets' imports resolve as a user's would, by the package's own name. */
const scratch = new URL('test-results/metrics-snippets/', root);
const page = readFileSync(new URL('docs/metrics.md', root), 'utf8');

/** Rows of the page's tables, cells trimmed. */
const rows = [...page.matchAll(/^\| (`.*) \|$/gm)].map(([, row = '']) => row.split('|').map((cell) => cell.trim()));

function codeIn(text = ''): string[] {
  return [...text.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code);
}

describe('docs/metrics.md', () => {
  it('has every metric with its type and labels, and no other', () => {
    const described = rows
      .filter(([, type = '']) => ['counter', 'gauge', 'histogram'].includes(type))
      .filter(([name]) => !name?.includes('.'));
    const expected = [...families, dynamoRejections, ...workerFamilies].map(({ name, type, labels }) => [
      name,
      type,
      // The page says which have no `inference_pool`.
      labels.filter((label) => label !== 'inference_pool'),
    ]);
    const [, exceptions] = /All but (.*?) also have the label\s`inference_pool`/s.exec(page) ?? [];
    expect(codeIn(exceptions).sort()).toEqual(
      families
        .filter(({ labels }) => !labels.includes('inference_pool'))
        .map(({ name }) => name.replace(/^flow_control_/, ''))
        .sort(),
    );
    const told = described.map(([name, type, labels]) => [codeIn(name)[0] as string, type, codeIn(labels)] as const);
    const byName = ([a]: readonly unknown[], [b]: readonly unknown[]): number => String(a).localeCompare(String(b));
    expect(told.sort(byName)).toEqual(expected.sort(byName));
  });

  it('has every metric of the document, or says that it is missing', () => {
    const prefix = 'inference_extension_';
    const wanted = mission.names['Flow Control'].filter((name) => name.startsWith(prefix));
    expect(wanted).toHaveLength(6);
    for (const name of wanted) expect(page).toContain(`\`${name.slice(prefix.length)}\``);
  });

  it('has every instrument with its unit, and no other', () => {
    const { attributes, waitSpan, requestSpan, ...recorded } = instruments;
    const all = [...Object.values(recorded), ...observables.map(({ instrument }) => instrument)];
    const described = rows
      .filter(([name]) => /^`(flow_control|gen_ai)\./.test(name ?? ''))
      .filter((row) => row.length === 4);
    expect(described.map(([name, unit]) => `${codeIn(name)[0]} ${codeIn(unit)[0]}`).sort()).toEqual(
      all.map(({ name, unit }) => `${name} ${unit}`).sort(),
    );
    const named = new Set([...families, dynamoRejections, ...workerFamilies].map(({ name }) => name));
    for (const [name = '', , , counterpart] of described) {
      const [alike = ''] = codeIn(name).map((code) => code.replaceAll('.', '_'));
      if (counterpart === '')
        expect([...named].filter((each) => each.replace(/_total$/, '') === alike)).toHaveLength(1);
      else if (counterpart !== 'none') expect(named).toContain(codeIn(counterpart)[0]);
    }
    for (const name of [...Object.values(attributes), waitSpan, requestSpan]) expect(page).toContain(`\`${name}\``);
  });

  it('has every option of prometheusMetrics', () => {
    let message = '';
    try {
      prometheusMetrics(makeFlow().flow, { '': 0 } as never);
    } catch (error) {
      message = error instanceof FlowConfigError ? error.message : '';
    }
    const options =
      /one of the keys (.*?); got/
        .exec(message)?.[1]
        ?.split(', ')
        .filter((name) => !name.includes('.')) ?? [];
    expect(options.length).toBeGreaterThan(8);
    const told = readFileSync(new URL('docs/options.md', root), 'utf8');
    for (const name of options) expect(told).toContain(`\n| \`${name}\` |`);
  });

  it('names channels of events that there are', () => {
    const source = readFileSync(new URL('src/core/events.ts', root), 'utf8');
    const body = /export interface FlowEvents.*?\{\n(.*?)^\}/ms.exec(source)?.[1] ?? '';
    const events = [...body.matchAll(/^ {2}(\w+):/gm)].map(([, event]) => `headgate:${event}`);
    expect(events).toContain('headgate:queued');
    const named = page.match(/headgate:\w+/g) ?? [];
    expect(named.length).toBeGreaterThan(0);
    expect(events).toEqual(expect.arrayContaining(named));
    // All of them are in the table of docs/api.md, as test/docs/api.test.ts holds.
    expect(page).toContain('One channel for each [event](api.md#events)');
  });

  it('has links that lead somewhere', () => {
    const links = [...page.matchAll(/\]\(([\w./-]+\.md)(?:#[\w-]+)?\)/g)].map(([, path]) => path as string);
    expect(links.length).toBeGreaterThan(2);
    for (const path of links) expect(() => readFileSync(new URL(path, new URL('docs/', root))), path).not.toThrow();
  });
});

describe('the snippets of docs/metrics.md', () => {
  const snippets = [...page.matchAll(/<!-- run by test\/docs\/metrics\.test\.ts -->\n```js\n(.*?)```/gs)].map(
    ([, code = '']) => code,
  );
  beforeAll(() => mkdirSync(scratch, { recursive: true }));
  afterAll(() => rmSync(scratch, { recursive: true, force: true }));

  it.each(snippets.map((code, index) => [index + 1, code] as const))('%i works as printed', async (index, code) => {
    const file = new URL(`snippet-${index}.mjs`, scratch);
    writeFileSync(file, code);
    const { test } = (await import(/* @vite-ignore */ pathToFileURL(fileURLToPath(file)).href)) as {
      test(assertions: typeof assert): Promise<void> | void;
    };
    await test(assert);
  });

  it('are three', () => {
    expect(snippets).toHaveLength(3);
  });
});
