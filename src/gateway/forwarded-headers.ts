/** Which headers pass the gateway. Control headers are gone before; what concerns one connection ends here. */
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http';
import { controlHeaders } from '../adapters/http/index.js';

type Headers = Readonly<Record<string, string | string[] | undefined>>;

/** Source: RFC 9110, section 7.6.1, and its predecessors. `trailer` stays out because trailers do. */
const hopByHop = new Set([
  'connection',
  'expect',
  'host',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
]);

function endToEnd(headers: Headers): OutgoingHttpHeaders {
  const named = String(headers.connection ?? '')
    .toLowerCase()
    .split(/ *, */);
  const passes = ([name]: [string, unknown]): boolean => !hopByHop.has(name) && !named.includes(name);
  return Object.fromEntries(Object.entries(headers).filter(passes));
}

/** What authenticates a client to the gateway. */
const credentials = ['authorization', 'x-api-key', 'api-key'];

export interface UpstreamHeaders {
  readonly requestId: string;
  /** Replaces the client's. */
  readonly apiKey: string | undefined;
  /** Whether the client's credentials were meant for the gateway. */
  readonly ownsKeys: boolean;
  /** Bytes of a body that is sent whole; undefined: as the client announced it. */
  readonly bodyBytes: number | undefined;
}

export function toUpstream(headers: IncomingHttpHeaders, { requestId, apiKey, ownsKeys, bodyBytes }: UpstreamHeaders): IncomingHttpHeaders {
  const passed: IncomingHttpHeaders = { ...endToEnd(headers), 'x-request-id': requestId } as IncomingHttpHeaders;
  for (const name of controlHeaders) delete passed[name];
  if (ownsKeys || apiKey !== undefined) for (const name of credentials) delete passed[name];
  if (apiKey !== undefined) passed.authorization = `Bearer ${apiKey}`;
  if (bodyBytes !== undefined) {
    passed['content-length'] = String(bodyBytes);
    // Answers are read for their usage while they pass.
    delete passed['accept-encoding'];
  }
  return passed;
}

export function toClient(headers: Headers, requestId: string): OutgoingHttpHeaders {
  return { ...endToEnd(headers), 'x-request-id': requestId };
}
