/** Headers in whatever form a host has them: web, Node, or a plain record. Lookups ignore case. */
import { controlHeaders, type HeaderNames } from './header-names.js';

/** The part of the web's `Headers` that is read; a Map by names in lower case has it too. */
export interface WebHeaders {
  get(name: string): string | null | undefined;
}

/** `IncomingMessage.headers`, or a plain object with names in any case. */
export type HeaderRecord = Readonly<Record<string, string | readonly string[] | undefined>>;

export type HeaderSource = WebHeaders | HeaderRecord;

/** The trimmed value of the first of `names` with one, joined by `, `. Unlike in llm-d-router, empty ones hide none. */
export function headerValue(headers: HeaderSource, names: HeaderNames): string | undefined {
  for (const name of names) {
    const value = headerText(headers, name)?.trim();
    if (value !== undefined && value !== '') return value;
  }
  return undefined;
}

/** The value of a header as it came, also an empty one; undefined when there is none. */
export function headerText(headers: HeaderSource, name: string): string | undefined {
  return isWebHeaders(headers) ? (headers.get(name) ?? undefined) : recordValue(headers, name);
}

/** A copy without the control headers, to send upstream. It keeps `content-length`: drop that if the body changes. */
export function stripFlowHeaders<H extends HeaderSource>(headers: H): H {
  if (isWebHeaders(headers)) {
    const copy = new Headers(headers as unknown as Headers);
    for (const name of controlHeaders) copy.delete(name);
    return copy as unknown as H;
  }
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !controlHeaders.has(name.toLowerCase()))) as H;
}

function isWebHeaders(headers: HeaderSource): headers is WebHeaders {
  return typeof headers.get === 'function';
}

function recordValue(headers: HeaderRecord, name: string): string | undefined {
  const value = headers[name] ?? valueInAnyCase(headers, name);
  return typeof value === 'object' ? value.join(', ') : value;
}

function valueInAnyCase(headers: HeaderRecord, name: string): HeaderRecord[string] {
  for (const key in headers) {
    // Comparing lengths first leaves next to nothing to lower-case.
    if (key.length === name.length && key.toLowerCase() === name) return headers[key];
  }
  return undefined;
}
