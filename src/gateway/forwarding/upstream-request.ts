/** A request as it goes on to a server: where to, with which headers, and its body in pieces. */
import { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import type { RequestState } from '../request-state.js';
import type { GatewayConfig, UpstreamConfig } from '../settings/gateway-config.js';
import { toUpstream } from './forwarded-headers.js';

export interface UpstreamRequestOptions {
  readonly config: GatewayConfig;
  readonly upstream: UpstreamConfig;
  /** Credentials of clients end here. */
  readonly ownsKeys: boolean;
}

/**
 * Gives the body in pieces, and drops each piece when it is sent, because undici keeps a whole body until the last byte
 * of the answer. The pieces are copies, because a slice would keep the whole body. The variables are emptied, because a
 * generator that has ended keeps them.
 */
function* pieces(body: { bytes: Buffer | undefined }): Generator<Buffer> {
  for (let at = 0; body.bytes !== undefined && at < body.bytes.length; at += pieceBytes) {
    yield Buffer.from(body.bytes.subarray(at, at + pieceBytes));
  }
  body.bytes = undefined;
}

const pieceBytes = 65_536;
const noBytes = Buffer.alloc(0);

function bodyOf(bytes: Buffer): Buffer | Readable {
  return bytes.length <= pieceBytes ? bytes : Readable.from(pieces({ bytes }), { objectMode: false });
}

export function requestOf(
  state: RequestState,
  { config, upstream, ownsKeys }: UpstreamRequestOptions,
): Dispatcher.DispatchOptions {
  const { req, bytes = noBytes, body } = state;
  const { origin, pathname } = locationOf(upstream);
  return {
    origin,
    path: pathname + (req.url ?? '/'),
    method: req.method as Dispatcher.HttpMethod,
    headers: toUpstream(req.headers, {
      requestId: state.id,
      apiKey: upstream.apiKey,
      ownsKeys,
      bodyBytes: bytes.length,
      isRead: body !== undefined,
      client: config.forwarded === 'set' ? req : undefined,
    }),
    body: bodyOf(bytes),
    headersTimeout: config.timeouts.firstByte,
    bodyTimeout: config.timeouts.idle,
  };
}

interface Location {
  readonly origin: string;
  /** The prefix before the path of the request; empty for a server at the root. */
  readonly pathname: string;
}

const locations = new WeakMap<UpstreamConfig, Location>();

/** Parsed once for each server, because parsing costs more than all the rest of a request's head. */
function locationOf(upstream: UpstreamConfig): Location {
  let location = locations.get(upstream);
  if (location === undefined) {
    const { origin, pathname } = new URL(upstream.url);
    location = { origin, pathname: pathname === '/' ? '' : pathname };
    locations.set(upstream, location);
  }
  return location;
}
