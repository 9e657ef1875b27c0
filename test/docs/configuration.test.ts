import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config/index.js';
import { concurrencyDetector, type FlowControllerOptions, resolveOptions } from '../../src/index.js';

const told = (page: string): string => readFileSync(new URL(`../../docs/${page}.md`, import.meta.url), 'utf8');
const page = told('configuration');

/** The code blocks of one language. */
function blocks(language: string): string[] {
  return [...page.matchAll(new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, 'gs'))].map(([, block = '']) => block);
}

function messageOf(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    return `${String(error)}\n`;
  }
  return '';
}

describe('docs/configuration.md', () => {
  it('prints the manifests that the loader is tested with', () => {
    expect(blocks('yaml')).toEqual([readFileSync(new URL('../config/manifests.yaml', import.meta.url), 'utf8')]);
  });

  it('prints the error of wrong options as it is', () => {
    const options = {
      saturationDetector: concurrencyDetector({ maxConcurrency: 15 }),
      limits: { maxRequests: '-5' },
      bands: [{ priority: 100, maxRequest: 500 }, { priority: 100 }],
      maxBands: 0,
    };
    expect(messageOf(() => resolveOptions(options as FlowControllerOptions))).toBe(blocks('text')[0]);
  });

  it('prints the errors of a wrong file as they are', () => {
    const source = `
apiVersion: llm-d.ai/v1alpha1
kind: EndpointPickerConfig
metadata:
  name: default-config
plugins:
- type: concurrency-detector
  parameters: { maxConcurency: 15 }
flowControl:
  maxBytes: 10GB
  defaultRequestTTL: 60
  priorityBands:
  - priority: 100
---
kind: InferenceObjective
spec: [
`;
    expect(messageOf(() => loadConfig(source))).toBe(blocks('text')[1]);
  });

  it('names every option and every field', () => {
    const wrong = { saturationDetector: () => 0, '': 0 };
    const options =
      messageOf(() => resolveOptions(wrong))
        .match(/one of the keys (.*?); got/)?.[1]
        ?.split(', ') ?? [];
    const file = { apiVersion: 'llm-d.ai/v1alpha1', kind: 'EndpointPickerConfig', flowControl: { '': 0 } };
    const fields =
      messageOf(() => loadConfig(file))
        .match(/one of the keys (.*?); got/)?.[1]
        ?.split(', ') ?? [];
    expect(options.length).toBeGreaterThan(10);
    expect(fields.length).toBeGreaterThan(10);
    for (const name of options) expect(told('options')).toContain(`\n| \`${name}`);
    for (const name of fields) expect(told('file-options')).toContain(`\n| \`${name}`);
  });
});
