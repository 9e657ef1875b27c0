import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  ExpositionReader,
  lineFinder,
  longestLine,
  parseValue,
} from '../../../src/upstream/scraping/exposition-reader.js';
import { cpuMsOf } from '../../support/cpu-time.js';
import { vllm } from './expositions.js';

interface Sample {
  metric: string;
  labels: Record<string, string>;
  value: number;
}

interface Found {
  samples: Sample[];
  declared: string[];
}

function readAll(chunks: readonly (string | Uint8Array)[], metrics: readonly string[]): Found {
  const found: Found = { samples: [], declared: [] };
  const reader = new ExpositionReader(lineFinder(metrics), {
    declared: (metric) => found.declared.push(metric),
    sample: (metric, labels, value) => found.samples.push({ metric, labels: Object.fromEntries(labels), value }),
  });
  for (const chunk of chunks) reader.push(typeof chunk === 'string' ? new TextEncoder().encode(chunk) : chunk);
  reader.end();
  return found;
}

function read(text: string, ...metrics: string[]): Sample[] {
  return readAll([text], metrics.length > 0 ? metrics : ['m']).samples;
}

describe('a sample', () => {
  it.each<[string, Sample[]]>([
    ['m 1', [{ metric: 'm', labels: {}, value: 1 }]],
    ['m 1\n', [{ metric: 'm', labels: {}, value: 1 }]],
    ['m 1\r\n', [{ metric: 'm', labels: {}, value: 1 }]],
    ['  m\t1.5e+3 ', [{ metric: 'm', labels: {}, value: 1500 }]],
    ['m{} 2', [{ metric: 'm', labels: {}, value: 2 }]],
    ['m {a="b"} 2', [{ metric: 'm', labels: { a: 'b' }, value: 2 }]],
    ['m{a="b",} 2', [{ metric: 'm', labels: { a: 'b' }, value: 2 }]],
    ['m{ a = "b" , c="" }2', [{ metric: 'm', labels: { a: 'b', c: '' }, value: 2 }]],
    ['m{a="x}y,z=\\"#"} 3', [{ metric: 'm', labels: { a: 'x}y,z="#' }, value: 3 }]],
    ['m{a="1\\\\2\\n3\\t"} 3', [{ metric: 'm', labels: { a: '1\\2\n3\\t' }, value: 3 }]],
    ['m{a="\\\\n"} 3', [{ metric: 'm', labels: { a: '\\n' }, value: 3 }]],
    ['m{__proto__="x"} 3', [{ metric: 'm', labels: JSON.parse('{"__proto__":"x"}'), value: 3 }]],
    ['m 4 1395066363000', [{ metric: 'm', labels: {}, value: 4 }]],
    ['m{a="b"} 4 -3', [{ metric: 'm', labels: { a: 'b' }, value: 4 }]],
    ['m 4 1395066363.5 # {trace="x"} 0.67', [{ metric: 'm', labels: {}, value: 4 }]],
    ['m +Inf', [{ metric: 'm', labels: {}, value: Number.POSITIVE_INFINITY }]],
    ['m NaN', [{ metric: 'm', labels: {}, value: Number.NaN }]],
    ['m{a="漢字🚀"} 5', [{ metric: 'm', labels: { a: '漢字🚀' }, value: 5 }]],
    ['m 1\nm 2', [1, 2].map((value) => ({ metric: 'm', labels: {}, value }))],
  ])('is read from %j', (text, samples) => {
    expect(read(text)).toEqual(samples);
  });

  it.each([
    ['', 'nothing'],
    ['m', 'no value'],
    ['m one', 'a word'],
    ['m 1 2 3', 'too many numbers'],
    ['m 1 now', 'a time that is none'],
    ['m 0x10', 'another notation'],
    ['m 1_000', 'another notation'],
    ['m{a="b" 1', 'no closing brace'],
    ['m{a="b} 1', 'no closing quote'],
    ['m{a=b} 1', 'no quotes'],
    ['m{a="b" c="d"} 1', 'no comma'],
    ['m{,} 1', 'a comma alone'],
    ['m{"a"="b"} 1', 'a quoted name'],
    ['{m="1"} 1', 'no name'],
    ['mm 1', 'a longer name'],
    ['m_total 1', 'another name'],
    ['# m 1', 'a comment'],
  ])('is not read from %j: %s', (text) => {
    expect(read(`${text}\n`)).toEqual([]);
    expect(read(`${text}\nm 7\n`)).toHaveLength(1);
  });
});

describe('a value', () => {
  it.each<[string, number]>([
    ['0', 0],
    ['-0.5', -0.5],
    ['+3', 3],
    ['.5', 0.5],
    ['5.', 5],
    ['1.7886264577368872e+09', 1788626457.7368872],
    ['1E3', 1000],
    ['-Inf', Number.NEGATIVE_INFINITY],
    ['inf', Number.POSITIVE_INFINITY],
    ['nan', Number.NaN],
  ])('%s is a number', (text, number) => {
    expect(parseValue(text)).toBe(number);
  });

  it.each([[''], ['e5'], ['.'], ['--1'], ['1e'], ['Infinit'], ['1,5'], [undefined]])('%j is none', (text) => {
    expect(parseValue(text)).toBeUndefined();
  });

  it('no text of many digits is one, and none is gone over again and again', () => {
    expect(parseValue('1'.repeat(400))).toBeGreaterThan(1e300);
    expect(parseValue('1'.repeat(401))).toBeUndefined();
    expect(parseValue(`${'1'.repeat(1_000_000)}x`)).toBeUndefined();
  });
});

it('a declaration tells that a metric exists, also without samples', () => {
  const text = '# HELP m Things.\n# TYPE m gauge\n#  TYPE\tn gauge\n# TYPE other gauge\n# EOF\n';
  expect(readAll([text], ['m', 'n'])).toEqual({ declared: ['m', 'n'], samples: [] });
});

it('what nobody wants is passed over', () => {
  const found = readAll([vllm({ waiting: 3 })], ['vllm:num_requests_waiting']);
  expect(found.samples.map(({ value }) => value)).toEqual([3]);
});

describe('chunks', () => {
  const line = fc.oneof(
    fc
      .tuple(
        fc.constantFrom('m', 'other', 'm_total'),
        fc.dictionary(fc.stringMatching(/^[a-z]\w{0,3}$/), fc.string({ unit: 'grapheme' })),
      )
      .map(([metric, labels]) => {
        const escaped = (text: string): string => text.replace(/[\\"\n]/g, (c) => (c === '\n' ? '\\n' : `\\${c}`));
        const list = Object.entries(labels).map(([name, text]) => `${name}="${escaped(text)}"`);
        return {
          text: `${metric}{${list.join(',')}} 1`,
          samples: metric === 'm' ? [{ metric, labels, value: 1 }] : [],
        };
      }),
    fc.double({ noNaN: true }).map((value) => ({
      text: `m ${String(value).replace('Infinity', 'Inf')}`,
      samples: [{ metric: 'm', labels: {}, value }],
    })),
    fc.string().map((text) => ({ text: `#${text.replace(/\n/g, ' ')}`, samples: [] })),
  );

  it('may end anywhere, within letters too', () => {
    fc.assert(
      fc.property(fc.array(line), fc.array(fc.nat(20)), (lines, sizes) => {
        const bytes = new TextEncoder().encode(lines.map(({ text }) => text).join('\n'));
        const chunks: Uint8Array[] = [];
        let at = 0;
        for (const size of sizes) {
          chunks.push(bytes.subarray(at, at + size));
          at += size;
        }
        chunks.push(bytes.subarray(at));
        const { samples } = readAll(chunks, ['m']);
        expect(samples.map((sample) => JSON.stringify(sample))).toEqual(
          lines.flatMap((expected) => expected.samples).map((sample) => JSON.stringify(sample)),
        );
      }),
      { numRuns: 300 },
    );
  });

  it('of any bytes do no harm', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 60 })), (chunks) => {
        for (const { metric } of readAll(chunks, ['m']).samples) expect(metric).toBe('m');
      }),
    );
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom('m', '{', '}', '"', '\\', ',', '=', ' ', '1', '\n', '#', 'TYPE')),
        (parts) => {
          for (const { metric } of read(parts.join(''))) expect(metric).toBe('m');
        },
      ),
    );
  });
});

describe('an endless line', () => {
  const endless = `m{a="${'x'.repeat(longestLine)}"} 1`;

  it('is passed over, in one piece and in many', () => {
    expect(read(`${endless}\nm 2\n`)).toMatchObject([{ value: 2 }]);
    const pieces = (endless.match(/.{1,1000}/g) ?? []) as string[];
    expect(readAll([...pieces, ...pieces, '\nm 2\n'], ['m']).samples).toMatchObject([{ value: 2 }]);
    expect(readAll(pieces, ['m']).samples).toEqual([]);
  });

  it.each([
    ['quotes', `m{a="${'\\"'.repeat(30_000)}`],
    ['labels', `m{${'a="b",'.repeat(10_000)}`],
    ['blanks', `m${' '.repeat(60_000)}x`],
    ['digits', `m ${'1'.repeat(60_000)} `.repeat(1)],
  ])('of %s costs time by its length', (_, text) => {
    const spentMs = cpuMsOf(() => {
      for (let i = 0; i < 20; i++) read(`${text}\n`);
    });
    expect(spentMs).toBeLessThan(3000);
  });
});
