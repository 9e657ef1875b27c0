/**
 * What the pages print of programs is what these print: docs/simulator.md, docs/capacity.md and
 * docs/recipes.md. And the examples of docs/capacity.md are computed again.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { capacityReport } from '../../examples/gateway/capacity-report.mjs';
import { concurrencyDetector, resolveOptions } from '../../src/index.js';
import { readTrace } from '../../src/simulator/index.js';
import { bundleCli } from '../gateway/support/bundled-cli.js';
import { blocksOf } from './pages.js';

const root = fileURLToPath(new URL('../../', import.meta.url));
let cli: Awaited<ReturnType<typeof bundleCli>>;
beforeAll(async () => {
  cli = await bundleCli();
});
afterAll(() => cli.remove());

/** The words of a command, as a shell splits them. */
const wordsOf = (command: string): string[] =>
  [...command.replaceAll('\\\n', ' ').matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, word]) => quoted ?? word ?? '');

describe.each([
  ['docs/simulator.md', 1],
  ['docs/capacity.md', 2],
] as const)('%s', (page, fewest) => {
  const blocks = blocksOf(page).filter(({ test }) => test === 'test/docs/simulated-outputs.test.ts');

  it('has outputs', () => expect(blocks.length).toBeGreaterThanOrEqual(fewest));

  it.each(blocks.map((block) => [block.line, block.code] as const))(
    'prints at line %i what is there',
    async (_, code) => {
      const [, command = '', output = ''] = /^\$ headgate ((?:[^\n]*\\\n)*[^\n]*\n)(.*)$/s.exec(code) ?? [];
      const { stdout, stderr } = await cli.start(wordsOf(command)).ended;
      expect(`${stderr}${stdout}`).toBe(output);
    },
    60_000,
  );
});

it('docs/capacity.md has the figures of the record', () => {
  const page = readFileSync(`${root}docs/capacity.md`, 'utf8');
  const [, shown = ''] = /<!-- measured -->\n\n(.*?)\n<!-- \/measured -->/s.exec(page) ?? [];
  const [, rate, seconds, servers, date = ''] =
    /^(\d+) requests a second for (\d+) s on (\d+) .*; (\S+)\.$/m.exec(shown) ?? [];
  const { rows } = readTrace(readFileSync(`${root}examples/gateway/capacity-record.csv`, 'utf8'));
  const run = { rate: Number(rate), seconds: Number(seconds), servers: Number(servers), date };
  expect(capacityReport(rows, run)).toBe(shown);
});

it('docs/recipes.md has the output of its program', () => {
  const program = `${root}examples/recipes/choose-max-concurrency.mjs`;
  const [shown] = blocksOf('docs/recipes.md').filter(({ language }) => language === 'text');
  expect(execFileSync(process.execPath, [program], { encoding: 'utf8' })).toBe(shown!.code);
});

it('docs/simulator.md quotes row S8 of the published results as it is', () => {
  const read = (page: string): string => readFileSync(`${root}docs/${page}.md`, 'utf8');
  const [row = ''] = /\*\*ours\*\* \| alone [^|]*; gate full of batch [^|]*/.exec(read('proof')) ?? [];
  const [ours, quoted] = [row, /In row S8.*?With both it is \d+ ms/s.exec(read('simulator'))![0]].map((text) =>
    [...text.matchAll(/(\d+) ms/g)].map(([, figure]) => figure),
  );
  const [alone, unprotected, full, recommended] = ours!;
  expect(quoted).toEqual([full, alone, unprotected, recommended]);
});

describe('docs/capacity.md', () => {
  const page = readFileSync(`${root}docs/capacity.md`, 'utf8');
  const figuresIn = (line: RegExp): number[] =>
    [...line.exec(page)![0].matchAll(/\d[\d,]*(?:\.\d+)?/g)].map(([text]) => Number(text.replaceAll(',', '')));

  it('computes seats from the cache', () => {
    const [sequences, cache, request, fit] = figuresIn(/`--max-num-seqs \d+`, a KV cache.*?fit into the cache/s);
    expect(fit).toBe(Math.min(sequences!, Math.floor(cache! / request!)));
    const [again, factor, seats, written] = figuresIn(/`24 × .*?maxConcurrency: \d+/s);
    expect([again, seats]).toEqual([fit, Math.floor(fit! * factor!)]);
    expect(written).toBe(seats);
  });

  it('computes the queue from seats and patience', () => {
    const [seats, seconds, perSecond, wait, queue] = figuresIn(
      /\d+ seats, \d+ s for a request.*?about \d+\s+requests/s,
    );
    expect(perSecond).toBe(seats! / seconds!);
    expect(queue).toBe(perSecond! * wait!);
  });

  it('knows the defaults', () => {
    const { limits } = resolveOptions({ saturationDetector: concurrencyDetector({ maxConcurrency: 1 }) });
    expect(figuresIn(/The default of [\d,]+/)).toEqual([limits.maxRequests]);
  });
});
