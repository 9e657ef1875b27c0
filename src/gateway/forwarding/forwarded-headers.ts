/** Which headers pass the gateway. Control headers were removed before; those of one connection end here. */
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http';
import {
  bandHeadroomHeader,
  controlHeaders,
  policyClassHeader,
  queueDurationHeader,
} from '../../adapters/http/index.js';
import { queueDuration } from '../../adapters/http/to-http-response.js';
import { hopByHop, namedByConnection } from '../../base/headers/hop-by-hop.js';
import type { RequestState } from '../request-state.js';
import type { GatewayConfig, UpstreamConfig } from '../settings/gateway-config.js';
import { rankHeaders } from './server-rank.js';

type Headers = Readonly<Record<string, string | string[] | undefined>>;

/** What requests have besides that ends here. */
const endsHere = new Set([...hopByHop, 'expect', 'host', 'http2-settings']);

/** A copy without the headers that end here, built anew, because an object that lost a property stays slow. */
function endToEnd(headers: Headers, isDropped: (name: string) => boolean): OutgoingHttpHeaders {
  const { connection } = headers;
  // Nearly every message has one of these two values, which name no header.
  const named =
    connection === undefined || connection === 'keep-alive' || connection === 'close'
      ? none
      : namedByConnection(String(connection));
  const passed: OutgoingHttpHeaders = {};
  for (const name in headers) {
    if (!endsHere.has(name) && !named.includes(name) && !isDropped(name)) passed[name] = headers[name];
  }
  return passed;
}

const none: readonly string[] = [];

/** Also with underscores, which servers may take for dashes, and one of this family that is not known here. */
function isControl(name: string, isTrusted: boolean): boolean {
  const dashed = name.includes('_') ? name.replaceAll('_', '-') : name;
  const isOwn = dashed.startsWith('x-llm-d-') || controlHeaders.has(dashed);
  return isOwn || (!isTrusted && dashed === policyClassHeader);
}

/** How a proxy tells of the client in front of it. */
const ofClient = ['for', 'host', 'proto', 'port'].map((name) => `x-forwarded-${name}`);
const forwardedHeaders = new Set(['forwarded', 'x-real-ip', ...ofClient]);

/** The headers that authenticate a client to the gateway. */
const credentials = new Set(['authorization', 'x-api-key', 'api-key']);

/** `ownsKeys`: credentials were for the gateway. `forwarded`: `X-Forwarded-…` says what is seen, or what came. */
export function toUpstream(
  { id, req, body, sender, lease }: RequestState,
  { apiKey, priority }: UpstreamConfig,
  ownsKeys: boolean,
  { forwarded, policyClasses }: Pick<GatewayConfig, 'forwarded' | 'policyClasses'>,
  bodyBytes: number,
): IncomingHttpHeaders {
  const tellsClient = forwarded === 'set';
  const isTrusted = sender?.trusted === true;
  const isDropped = (name: string): boolean =>
    isControl(name, isTrusted) ||
    (tellsClient && forwardedHeaders.has(name)) ||
    ((ownsKeys || apiKey !== undefined) && credentials.has(name)) ||
    (priority !== undefined && !isTrusted && rankHeaders.includes(name)) ||
    // Answers are read for their usage while they pass, and bodies that were packed have been unpacked.
    (body !== undefined && (name === 'accept-encoding' || name === 'content-encoding'));
  const passed = endToEnd(req.headers, isDropped) as IncomingHttpHeaders;
  passed['x-request-id'] = id;
  if (tellsClient) {
    passed['x-forwarded-for'] = req.socket.remoteAddress ?? 'unknown';
    passed['x-forwarded-proto'] = 'http';
    if (req.headers.host !== undefined) passed['x-forwarded-host'] = req.headers.host;
  }
  const policyClass = lease && policyClasses.get(lease.priority);
  if (policyClass !== undefined && priority === 'dynamo') passed[policyClassHeader] ??= policyClass;
  if (apiKey !== undefined) passed.authorization = `Bearer ${apiKey}`;
  passed['content-length'] = String(bodyBytes);
  return passed;
}

const nothing = (): boolean => false;
const isCors = (name: string): boolean => name.startsWith('access-control-');

/** With what the gateway adds: one object, because Node checks each header that is set by itself once more. */
export function toClient(headers: Headers, { id, ownsCors, granted }: RequestState): OutgoingHttpHeaders {
  const passed = endToEnd(headers, ownsCors ? isCors : nothing);
  passed['x-request-id'] = id;
  if (granted === undefined) return passed;
  passed[queueDurationHeader] = queueDuration(granted);
  if (granted.bandHeadroom !== undefined) passed[bandHeadroomHeader] = String(granted.bandHeadroom);
  return passed;
}
