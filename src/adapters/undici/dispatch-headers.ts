/** The headers of a dispatch in undici's forms: none, a record, a flat list of names and values, or pairs. */
import type { Dispatcher } from 'undici';
import { controlHeaders } from '../../base/headers/header-names.js';
import { type HeaderRecord, type HeaderSource, stripFlowHeaders } from '../../base/headers/header-source.js';

type Given = Dispatcher.DispatchOptions['headers'];
type Values = string | readonly string[] | undefined;
/** The forms that can be read more than once. */
export type DispatchHeaders = HeaderRecord | string[] | null;

/** Pairs, which may come from an iterator, as a flat list; everything else as it is. */
export function flattened(headers: Given): DispatchHeaders {
  if (headers === undefined || headers === null || Array.isArray(headers)) return headers ?? null;
  if (!(Symbol.iterator in headers)) return headers as HeaderRecord;
  return [...(headers as Iterable<[string, Values]>)].flatMap(([name, value]) =>
    value === undefined ? [] : [value].flat().flatMap((text) => [name, text]),
  );
}

export function readable(headers: DispatchHeaders): HeaderSource {
  if (headers === null) return {};
  if (!Array.isArray(headers)) return headers;
  return {
    get(wanted: string): string | null {
      const values = headers.filter((_, i) => i % 2 === 1 && headers[i - 1]!.toLowerCase() === wanted);
      return values.length === 0 ? null : values.join(', ');
    },
  };
}

/** Without the flow headers; the same object when there are none. */
export function stripped(headers: DispatchHeaders): DispatchHeaders {
  if (headers === null) return null;
  if (Array.isArray(headers)) return headers.filter((_, i) => !isControl(headers[i - (i % 2)]!));
  return Object.keys(headers).some(isControl) ? stripFlowHeaders(headers) : headers;
}

function isControl(name: string): boolean {
  return controlHeaders.has(name.toLowerCase());
}
