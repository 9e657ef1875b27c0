/** What `/metrics` of the picker shows, beside what the reference showed. */
import { expect } from 'vitest';
import { type Difference, differs } from './differences.js';

const sample = /^([^{\s]+)(?:\{(.*)\})? (\S+)$/;
const prefix = 'llm_d_epp_';

interface Sample {
  readonly name: string;
  readonly labels: ReadonlyMap<string, string>;
  readonly value: number | '*';
}

function read(line: string): Sample | undefined {
  const [, name, labels = '', value] = sample.exec(line) ?? [];
  if (name === undefined || value === undefined) return undefined;
  const pairs = [...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, key = '', each = '']) => [key, each] as const);
  return { name, labels: new Map(pairs), value: value === '*' ? value : Number(value) };
}

/** Whether a sample of ours counts the same as one of the reference. */
function isSame(ours: Sample, { name, labels }: Sample): boolean {
  if (ours.name !== name) return false;
  return [...labels].every(([key, value]) => {
    const got = ours.labels.get(key);
    if (got === value) return true;
    const isOther = got === 'other' && /model_name$/.test(key);
    if (isOther) differs('a model is `other` until it answers');
    return isOther || (key === 'stage' && got === undefined);
  });
}

/** What the reference tells at this moment and this picker does not, by the entry of the list. */
function absence({ name, labels }: Sample, hasCancelled: boolean): Difference | undefined {
  if (!name.startsWith(prefix)) return 'deprecated names of metrics';
  if (name.includes('dispatch_cycle')) return 'nothing walks while nothing can go';
  if (hasCancelled && labels.get('error_code') === 'ServiceUnavailable') return 'a client that leaves is no error';
  if (/_(?:in|out)put_tokens_/.test(name) && labels.get('model_name') === '') return 'tokens of nobody';
  return undefined;
}

/** @throws when a sample of the reference is missing, or has another value */
export async function compareSamples(port: number, lines: readonly string[], hasCancelled: boolean): Promise<void> {
  const page = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const shown = page.split('\n').flatMap((line) => read(line) ?? []);
  for (const line of lines) {
    const expected = read(line);
    if (expected === undefined) throw new Error(`expected a sample; got ${line}`);
    if (expected.labels.has('stage')) differs('stages of saturation');
    const same = shown.filter((each) => isSame(each, expected));
    const difference = same.length === 0 ? absence(expected, hasCancelled) : undefined;
    const sum = same.reduce((total, { value }) => total + Number(value), 0);
    if (difference !== undefined) differs(difference);
    else if (expected.name.endsWith('_request_total') && sum < Number(expected.value))
      differs('a request is counted at its end');
    else {
      expect(same.length, line).toBeGreaterThan(0);
      if (expected.value !== '*') expect(sum, line).toBeCloseTo(expected.value, 12);
    }
  }
}
