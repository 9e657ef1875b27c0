import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { loadGatewayConfig } from '../../../src/gateway/index.js';
import { defaultRegistry } from '../../../src/index.js';
import type { QuotaDetector } from '../../../src/types/index.js';

const page = readFileSync(new URL('../../../docs/quotas.md', import.meta.url), 'utf8');
const yaml = /```yaml\n(.*?)```/s.exec(page)?.[1] ?? '';

describe('quotas in files', () => {
  it('are read from the page that documents them', () => {
    const file = parse(yaml.replaceAll(/\{ env: \w+ \}/g, 'a-secret')) as object;
    const { flow, retry } = loadGatewayConfig(file);
    expect(flow.saturationDetector).toMatchObject({ type: 'quota-detector' });
    expect(flow.endpointPicker).toMatchObject({ type: 'most-budget-left-picker' });
    expect(retry.max).toBe(3);
  });

  it('say what is wrong with them, and where', () => {
    const make = () =>
      defaultRegistry().create('quota-detector', { groups: [{ quotas: [{ unit: 'requests', limit: '5' }] }] });
    expect(make).toThrow('groups[0].quotas[0].limit: expected a number above 0; got "5" (string)');
    expect((defaultRegistry().create('quota-detector', {}) as QuotaDetector).quotas(0).quotas).toEqual([]);
  });

  it('a picker by budget needs the name of a quota detector', () => {
    const references = { resolve: () => ({ type: 'other', saturation: () => 0 }) as never };
    expect(() => defaultRegistry().create('most-budget-left-picker', { detector: 'x' }, references)).toThrow(
      'expected the name of a quota detector',
    );
  });
});
