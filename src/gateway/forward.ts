/**
 * The reverse proxy: one request to the server that its lease names, streamed both ways with back-pressure.
 *
 * Invariant: when either side is gone the other is told, so that no server generates for nobody; and a client never takes half an
 * answer for a whole one.
 */
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Agent, Dispatcher } from 'undici';
import { isOverloadRefusal } from '../adapters/http/index.js';
import type { AdaptiveDetector, Lease, SaturationDetector } from '../index.js';
import { type UsageReader, usageReader } from '../upstream/index.js';
import { ApiError } from './api-error.js';
import type { BodyReader } from './body-reader.js';
import type { Call } from './call.js';
import { toClient, toUpstream } from './forwarded-headers.js';
import type { GatewayConfig, UpstreamConfig } from './gateway-config.js';

/** The result of an attempt: `answered` also when the answer broke off; `refused` when the server can be avoided and another one asked. */
export type ForwardResult = { readonly type: 'answered' } | { readonly type: 'refused'; readonly error: ApiError };

export interface ForwardOptions {
  readonly agent: Agent;
  readonly bodies: BodyReader;
  readonly config: GatewayConfig;
  readonly upstream: UpstreamConfig;
  /** Credentials of clients end here. */
  readonly ownsKeys: boolean;
  /** Called when the server has refused, or cannot be reached; `isCertain` when that alone shows that it should get no work for a while. */
  readonly avoid: (isCertain: boolean) => void;
  /** Whether a refusal may be kept from the client, because another server will be asked. */
  readonly mayRetry: boolean;
  /** Another server has refused this request: what the second one says may be the request's fault. */
  readonly isRetry: boolean;
  /** No answer after this one on the same connection. */
  readonly closesConnection: boolean;
}

const answered: ForwardResult = { type: 'answered' };

class TotalTimeout extends Error {}

/** @throws ApiError for what the client must be told; nothing has been sent then. */
export async function forward(call: Call, lease: Lease, options: ForwardOptions): Promise<ForwardResult> {
  const { config, upstream } = options;
  const timer = setTimeout(() => lease.abort(new TotalTimeout()), config.timeouts.totalMs);
  const detectors = config.detectors.filter(isAdaptive);
  try {
    return await exchange(call, lease, options, detectors);
  } catch (error) {
    const { signal } = lease;
    const isTimeout = signal.reason instanceof TotalTimeout;
    if (signal.aborted && !isTimeout) {
      call.cutBy = lease.isEvicted ? 'eviction' : 'client';
      return answered; // the client left, or the gate evicts it and answers
    }
    const failure = isTimeout ? new ApiError(504, 'upstream_timeout', 'The answer took too long.') : failureOf(error, upstream.id);
    call.failure = failure.code;
    if (failure.status === 504) for (const detector of detectors) detector.observe({ isDrop: true });
    const isUnreachable = nothingWasSent(error);
    if (isUnreachable) options.avoid(true);
    if (!call.res.headersSent) {
      if (options.mayRetry && isUnreachable) return { type: 'refused', error: failure };
      throw failure;
    }
    call.cutBy = failure.status === 504 ? 'timeout' : 'upstream';
    call.res.destroy();
    return answered;
  } finally {
    clearTimeout(timer);
  }
}

async function exchange(call: Call, lease: Lease, options: ForwardOptions, detectors: readonly AdaptiveDetector[]): Promise<ForwardResult> {
  const { res } = call;
  const { config, upstream, mayRetry } = options;
  const answer = await send(call, lease, options);
  const refusal = answer.statusCode < 400 ? undefined : await beginningOf(answer.body);
  if (refusal !== undefined && isOverloadRefusal({ status: answer.statusCode, body: refusal.toString('utf8') })) {
    for (const detector of detectors) detector.observe({ isDrop: true });
    if (!options.isRetry) options.avoid(answer.headers['retry-after'] !== undefined || saysOverloaded(refusal));
    call.failure = 'upstream_overloaded';
    if (mayRetry) {
      abandon(answer.body);
      return { type: 'refused', error: new ApiError(503, 'upstream_overloaded', `${upstream.id} is overloaded.`) };
    }
  }
  // It will not be sent again.
  call.bytes = undefined;
  writeHead(call, answer, options.closesConnection);
  res.setTimeout(config.timeouts.idleMs, () => res.destroy());
  if (refusal !== undefined) res.write(refusal);
  else observe(call, answer, lease, detectors);
  await pipeline(answer.body, res);
  return answered;
}

/** An answer that cannot be repeated, because its status line or a header has bytes that Node does not write, is not read either. */
function writeHead({ res, id }: Call, answer: Dispatcher.ResponseData, closesConnection: boolean): void {
  const before = res.getHeaderNames();
  try {
    const headers = toClient(answer.headers, id);
    res.writeHead(answer.statusCode, closesConnection ? { ...headers, connection: 'close' } : headers);
    res.flushHeaders();
  } catch (error) {
    abandon(answer.body);
    // Those that were taken belong to the answer that is not sent.
    for (const name of res.getHeaderNames()) if (!before.includes(name)) res.removeHeader(name);
    throw error;
  }
}

/** Closes its connection. */
function abandon(body: Dispatcher.ResponseData['body']): void {
  body.on('error', () => {});
  body.destroy();
}

function saysOverloaded(refusal: Buffer): boolean {
  return isOverloadRefusal({ status: 400, body: refusal.toString('utf8') });
}

/**
 * In pieces that are forgotten once they are sent: undici keeps what it is given until the last byte of the answer. Copies, because a
 * slice would keep the whole; and a generator that has ended keeps its variables, so that they are emptied.
 */
function* pieces(body: { bytes: Buffer | undefined }): Generator<Buffer> {
  for (let at = 0; body.bytes !== undefined && at < body.bytes.length; at += pieceBytes) {
    yield Buffer.from(body.bytes.subarray(at, at + pieceBytes));
  }
  body.bytes = undefined;
}

const pieceBytes = 65_536;

function bodyOf({ req, bytes }: Call, bodies: BodyReader): Buffer | Readable {
  if (bytes === undefined) return Readable.from(bodies.pass(req), { objectMode: false });
  return bytes.length <= pieceBytes ? bytes : Readable.from(pieces({ bytes }), { objectMode: false });
}

function send(
  call: Call,
  { signal }: Lease,
  { agent, bodies, config, upstream, ownsKeys }: ForwardOptions,
): Promise<Dispatcher.ResponseData> {
  const { req, bytes } = call;
  const { origin, pathname } = new URL(upstream.url);
  return agent.request({
    origin,
    path: (pathname === '/' ? '' : pathname) + (req.url ?? '/'),
    method: req.method as Dispatcher.HttpMethod,
    headers: toUpstream(req.headers, {
      requestId: call.id,
      apiKey: upstream.apiKey,
      ownsKeys,
      bodyBytes: bytes?.length,
      client: config.forwarded === 'set' ? req : undefined,
    }),
    body: bodyOf(call, bodies),
    signal,
    headersTimeout: config.timeouts.firstByteMs,
    bodyTimeout: config.timeouts.idleMs,
  });
}

/** Reads along while the answer passes: for policies that count tokens, and for detectors that go by the first of them. */
function observe(call: Call, { headers, body }: Dispatcher.ResponseData, lease: Lease, detectors: readonly AdaptiveDetector[]): void {
  const encoding = headers['content-encoding'];
  if (call.body === undefined || (encoding !== undefined && encoding !== 'identity')) return;
  const usage: UsageReader = usageReader({ lease, cachedTokens: true });
  let hasToken = false;
  body.on('data', (chunk: Buffer) => {
    usage.push(chunk);
    if (hasToken || usage.firstTokenAtMs === undefined) return;
    hasToken = true;
    call.ttftMs = usage.firstTokenAtMs - call.startedAtMs;
    const ttftMs = Math.max(usage.firstTokenAtMs - lease.dispatchedAtMs, 0);
    const promptTokens = usage.usage.promptTokens ?? call.body?.inputTokens;
    for (const detector of detectors) detector.observe({ ttftMs, promptTokens });
  });
  body.once('end', () => usage.end());
}

/** Errors are short; what is longer is none, and passes on. */
const longestError = 65_536;

/** As much of an answer as is there, up to the end or to what an error needs. */
async function beginningOf(body: Dispatcher.ResponseData['body']): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  while (bytes < longestError) {
    const chunk = await next(body);
    if (chunk === undefined) break;
    chunks.push(chunk);
    bytes += chunk.length;
  }
  return Buffer.concat(chunks, bytes);
}

function next(body: Dispatcher.ResponseData['body']): Promise<Buffer | undefined> {
  return new Promise((resolve, reject) => {
    const settle = (): void => {
      body.off('readable', look).off('end', look).off('error', fail);
    };
    const look = (): void => {
      const chunk: Buffer | null = body.read();
      if (chunk === null && !body.readableEnded) return;
      settle();
      resolve(chunk ?? undefined);
    };
    const fail = (error: Error): void => {
      settle();
      reject(error);
    };
    body.on('readable', look).on('end', look).on('error', fail);
    look();
  });
}

function isAdaptive(detector: SaturationDetector): detector is AdaptiveDetector {
  return 'observe' in detector && typeof detector.observe === 'function';
}

function codeOf(error: unknown): string {
  return typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : '';
}

/** Connections that never came to be. */
const unconnected = ['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND', 'EAI_AGAIN', 'UND_ERR_CONNECT_TIMEOUT'];

function nothingWasSent(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.every(nothingWasSent);
  return unconnected.includes(codeOf(error));
}

function failureOf(error: unknown, upstream: string): ApiError {
  if (error instanceof ApiError) return error;
  const code = codeOf(error);
  if (/^UND_ERR_(CONNECT|HEADERS|BODY)_TIMEOUT$/.test(code))
    return new ApiError(504, 'upstream_timeout', `${upstream} did not answer in time.`);
  if (nothingWasSent(error)) return new ApiError(502, 'upstream_unreachable', `${upstream} cannot be reached.`);
  return new ApiError(502, 'upstream_failed', `${upstream} broke off before it answered.`);
}
