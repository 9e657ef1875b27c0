/** Tells a proxy of an answer's usage, by CEL of the file. Source: llm-d-router, `request-attribute-reporter`. */
import type { parse } from '@marcbachmann/cel-js';
import type { Struct, Value } from '../../adapters/ext-proc/index.js';
import { FlowConfigError, type Usage } from '../../index.js';

/** An entry of the plugin's `attributes`. */
export interface ReportedAttribute {
  readonly key: { readonly namespace: string; readonly name: string };
  /** Its value, a number; `usage` is what the server reported. 0 is not told. */
  readonly expression: string;
  /** Told only where it is true. */
  readonly condition?: string | undefined;
}

/** Undefined where the usage says nothing of them. */
export type UsageReport = (usage: Usage) => Struct | undefined;

/** @throws FlowConfigError for a text that is no expression, and without the package that reads them */
export function usageReport(attributes: readonly ReportedAttribute[], parser: typeof parse | undefined): UsageReport {
  const read = (text: string) => {
    try {
      if (parser !== undefined) return parser(text);
    } catch (error) {
      const expected = `an expression of CEL (${String(error).split('\n', 1)[0]})`;
      throw new FlowConfigError('request-attribute-reporter', [{ path: 'expression', expected, got: text }]);
    }
    const expected = 'the package @marcbachmann/cel-js: npm install @marcbachmann/cel-js';
    throw new FlowConfigError('request-attribute-reporter', [{ path: '', expected, got: 'no such package' }]);
  };
  const programs = attributes.map(({ key, expression, condition = 'true' }) => {
    return { key, value: read(expression), isWanted: read(condition) };
  });
  return ({ promptTokens, completionTokens, cachedPromptTokens = 0 }) => {
    const usage = {
      prompt_tokens: promptTokens,
      completion_tokens: completionTokens,
      total_tokens: promptTokens + completionTokens,
      prompt_token_details: { cached_tokens: cachedPromptTokens },
    };
    const told = new Map<string, Record<string, Value>>();
    for (const { key, value, isWanted } of programs) {
      const numberValue = isWanted({ usage }) === true ? Math.trunc(Number(value({ usage }))) : 0;
      if (Number.isFinite(numberValue) && numberValue !== 0)
        told.set(key.namespace, { ...told.get(key.namespace), [key.name]: { numberValue } });
    }
    const namespaces = Array.from(told, ([name, fields]) => [name, { structValue: { fields } }] as const);
    return namespaces.length === 0 ? undefined : { fields: Object.fromEntries(namespaces) };
  };
}
