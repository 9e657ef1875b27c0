/** A request as it goes on to a server: where to, with which headers, and its body in pieces. */
import { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import { put } from '../../base/put.js';
import { withFields } from '../bodies/with-fields.js';
import type { RequestState } from '../request-state.js';
import type { GatewayConfig, UpstreamConfig } from '../settings/gateway-config.js';
import { toUpstream } from './forwarded-headers.js';
import { rankFields } from './server-rank.js';

/** Drops each piece when it is sent, as undici keeps a body to the end; as copies, since a slice keeps the whole. */
function* pieces(body: { bytes: Buffer | undefined }): Generator<Buffer> {
  for (let at = 0; body.bytes !== undefined && at < body.bytes.length; at += pieceBytes)
    yield Buffer.from(body.bytes.subarray(at, at + pieceBytes));
  body.bytes = undefined;
}

const pieceBytes = 65_536;
const noBytes = Buffer.alloc(0);

/** `ownsKeys`: credentials of clients end here. */
export function requestOf(
  state: RequestState,
  upstream: UpstreamConfig,
  config: GatewayConfig,
  ownsKeys: boolean,
): Dispatcher.DispatchOptions {
  const { req } = state;
  const bytes = bodyFor(state, upstream);
  const { origin, pathname } = locationOf(upstream);
  return {
    origin,
    path: pathname + (req.url ?? '/'),
    method: req.method as Dispatcher.HttpMethod,
    headers: toUpstream(state, upstream, ownsKeys, config, bytes.length),
    body: bytes.length <= pieceBytes ? bytes : Readable.from(pieces({ bytes }), { objectMode: false }),
    headersTimeout: config.timeouts.firstByte,
    bodyTimeout: config.timeouts.idle,
  };
}

/** The client's body, with the name of the model and the rank that the server knows. */
export function bodyFor(state: RequestState, upstream: UpstreamConfig): Buffer {
  const { bytes = noBytes, body, model, targetModel } = state;
  if (body === undefined) return bytes;
  const rank = rankFields(state, upstream);
  return withFields(bytes, body.spans, targetModel === model ? rank : { ...rank, model: JSON.stringify(targetModel) });
}

/** `pathname`: the prefix before the path of the request; empty for a server at the root. */
type Location = { readonly origin: string; readonly pathname: string };

const locations = new WeakMap<UpstreamConfig, Location>();

/** Parsed once for each server, because parsing costs more than all the rest of a request's head. */
export function locationOf(upstream: UpstreamConfig): Location {
  const known = locations.get(upstream);
  if (known !== undefined) return known;
  const { origin, pathname } = new URL(upstream.url);
  return put(locations, upstream, { origin, pathname: pathname === '/' ? '' : pathname });
}
