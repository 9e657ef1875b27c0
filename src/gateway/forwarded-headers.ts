/** Which headers pass the gateway. Control headers are gone before; what concerns one connection ends here. */
import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders } from 'node:http';
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
    .split(/[\s,]+/);
  const passes = ([name]: [string, unknown]): boolean => !hopByHop.has(name) && !named.includes(name);
  return Object.fromEntries(Object.entries(headers).filter(passes));
}

/**
 * Whether a header is for gateways alone. Servers that turn headers into variables take underscores for dashes, so that a client could
 * say with one what it may not say with the other; and a name of the family that is not known here may be known to a server.
 */
function isControl(name: string): boolean {
  const dashed = name.replaceAll('_', '-');
  return dashed.startsWith('x-llm-d-') || controlHeaders.has(dashed);
}

/** How a proxy tells of the client in front of it. */
const forwardedHeaders = ['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-forwarded-port', 'x-real-ip'];

/** The headers that authenticate a client to the gateway. */
const credentials = ['authorization', 'x-api-key', 'api-key'];

export interface UpstreamHeaders {
  readonly requestId: string;
  /** Replaces the client's. */
  readonly apiKey: string | undefined;
  /** Whether the client's credentials were meant for the gateway. */
  readonly ownsKeys: boolean;
  /** Bytes of a body that is sent whole; undefined: as the client announced it. */
  readonly bodyBytes: number | undefined;
  /** Told of in `X-Forwarded-…`, in place of what it says there itself; undefined: what it says is passed on. */
  readonly client: IncomingMessage | undefined;
}

export function toUpstream(
  headers: IncomingHttpHeaders,
  { requestId, apiKey, ownsKeys, bodyBytes, client }: UpstreamHeaders,
): IncomingHttpHeaders {
  const passed: IncomingHttpHeaders = { ...endToEnd(headers), 'x-request-id': requestId } as IncomingHttpHeaders;
  for (const name of Object.keys(passed)) if (isControl(name)) delete passed[name];
  if (client !== undefined) {
    for (const name of forwardedHeaders) delete passed[name];
    Object.assign(passed, clientOf(client));
  }
  if (ownsKeys || apiKey !== undefined) for (const name of credentials) delete passed[name];
  if (apiKey !== undefined) passed.authorization = `Bearer ${apiKey}`;
  if (bodyBytes !== undefined) {
    passed['content-length'] = String(bodyBytes);
    // Answers are read for their usage while they pass.
    delete passed['accept-encoding'];
  }
  return passed;
}

function clientOf({ socket, headers }: IncomingMessage): IncomingHttpHeaders {
  const host = headers.host === undefined ? {} : { 'x-forwarded-host': headers.host };
  return { 'x-forwarded-for': socket.remoteAddress ?? 'unknown', 'x-forwarded-proto': 'http', ...host };
}

export function toClient(headers: Headers, requestId: string): OutgoingHttpHeaders {
  return { ...endToEnd(headers), 'x-request-id': requestId };
}
