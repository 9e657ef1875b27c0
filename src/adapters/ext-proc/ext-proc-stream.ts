/**
 * One HTTP request, as a proxy tells of it on a stream of its own: parts come in, answers go out. No gRPC is here.
 *
 *     headers ─► body ─► deciding ─► answered ─► over        of the request
 *                 413    400 429 503    │  evicted
 *                                       └ response: headers, body, trailers ─► over
 *
 * Invariant: the answers of each direction come in the order headers, body, trailers; a refusal is the last message;
 * the exchange ends once, and after that nothing is written.
 * Longer than most files, because every part can come in every state, and one object holds them all.
 */
import { randomUUID } from 'node:crypto';
import { controlHeaders, policyClassHeader } from '../../base/headers/header-names.js';
import { GatheredBytes } from '../../base/stream/gathered-bytes.js';
import type { Exchange } from '../http/exchange.js';
import type { RequestFlow } from '../http/request-flow.js';
import { type HttpErrorResponse, openaiError, tooLargeResponse } from '../http/to-http-response.js';
import type {
  BodyPiece,
  HeaderMutation,
  HeaderValue,
  ProcessingRequest,
  ProcessingResponse,
  Struct,
} from './messages.js';

/** The transport of a stream. */
export interface ExtProcSink {
  write(response: ProcessingResponse): void;
  /** Ends the stream: with OK, or with a status of gRPC. */
  end(code?: number, details?: string): void;
}

/** Reads an answer while it passes, and may change it. */
export interface AnswerReader {
  /** False: the answer's length may change. */
  readonly keepsLength: boolean;
  /** What goes to the client in place of `piece`; what is held back goes with a later one, at the latest the last. */
  pass(piece: Uint8Array, isLast: boolean): Uint8Array;
  /** After the last piece: what the proxy is told beside it, by namespaces. */
  facts?(): Struct | undefined;
}

/** What options of `flowControl`, and policies in `item.request.req`, see of a request. */
export interface ExtProcRequest {
  /** By names in lower case, pseudo headers such as `:path` included; the values of one name are joined by `, `. */
  readonly headers: ReadonlyMap<string, string>;
  /** Its `x-request-id`; one is made, and set, where there is none. */
  readonly id: string;
  /** `:path` without its query. */
  readonly path: string;
  /** It ended with its headers. */
  readonly hasNoBody: boolean;
  /** All of it. What is put here goes to the server in its place. */
  body: Buffer;
  /** The endpoints that the proxy allows, as it wrote them in `envoy.lb.subset_hint`; undefined: any. */
  readonly subset: readonly string[] | undefined;
  /** Of the answer: the server's, or a refusal; 0 before it. */
  readonly status: number;
  /** The answer is a refusal, and no server's. */
  readonly isRefused: boolean;
  /** The host's own: nothing here reads it. */
  note: unknown;
}

/** What a stream asks of the adapter behind it. */
export interface ExtProcDecider {
  readonly maxRequestBytes: number;
  /** Counts bytes of bodies that are being read, over all streams. False: there is no room for them. */
  reserve(bytes: number): boolean;
  /** The request is whole. */
  decide(stream: ExtProcStream): void;
  /** The head of the server's answer has come. */
  responded(stream: ExtProcStream, headers: ReadonlyMap<string, string>, served: string | undefined): void;
  ended(stream: ExtProcStream): void;
}

const destinationHeader = 'x-gateway-destination-endpoint';
const requestIdHeader = 'x-request-id';
const servedKey = 'x-gateway-destination-endpoint-served';
const subsetKey = 'x-gateway-destination-endpoint-subset';
const [lb, subsetHint] = ['envoy.lb', 'envoy.lb.subset_hint'];

/** Envoy takes 64 KiB of a piece; the reference splits here. */
const longestPiece = 62_000;
const noBytes: Buffer = Buffer.alloc(0);
const noHeaders: Map<string, string> = new Map();

/** How a proxy sends bodies. Source: Envoy's `ProcessingMode.BodySendMode`. */
const bodyModes = { none: 0, streamed: 1, buffered: 2, fullDuplex: 4 } as const;

const grpc = { invalidArgument: 3, failedPrecondition: 9 } as const;

export class ExtProcStream implements Exchange<ExtProcRequest>, ExtProcRequest {
  headers: Map<string, string> = noHeaders;
  id = '';
  body: Buffer = noBytes;
  hasNoBody = false;
  subset: readonly string[] | undefined = undefined;
  status = 0;
  isRefused = false;
  note: unknown = undefined;
  /** The lease and its request, once dispatched. */
  flow: RequestFlow | undefined = undefined;
  /** What its sender says of it goes on to the server. Written by flow-control. */
  isTrusted = false;
  /** Reads the answer while it passes. */
  reader: AnswerReader | undefined = undefined;
  /** Ends a request that does not arrive. */
  timer: ReturnType<typeof setTimeout> | undefined = undefined;
  private phase: 'headers' | 'body' | 'deciding' | 'answered' | 'over' = 'headers';
  private modes: Modes = { requestBodyMode: bodyModes.fullDuplex, responseBodyMode: bodyModes.fullDuplex };
  private readonly gathered = new GatheredBytes();
  private received: Buffer = noBytes;
  private hasTrailers = false;
  private isSent: boolean | undefined = undefined;
  private done: ((isSent: boolean) => void) | undefined = undefined;
  private readonly removed: string[] = [];
  private readonly sink: ExtProcSink;
  private readonly decider: ExtProcDecider;

  constructor(sink: ExtProcSink, decider: ExtProcDecider) {
    this.sink = sink;
    this.decider = decider;
  }

  get req(): ExtProcRequest {
    return this;
  }

  get path(): string {
    return (this.headers.get(':path') ?? '').split('?', 1)[0] ?? '';
  }

  receive(message: ProcessingRequest): void {
    if (this.phase === 'over') return;
    if (message.protocolConfig) {
      const { requestBodyMode = 0, responseBodyMode = 0 } = message.protocolConfig;
      this.modes = { requestBodyMode, responseBodyMode };
    }
    const fault = message.protocolConfig && faultOf(this.modes);
    if (fault) return void this.end(grpc.failedPrecondition, fault);
    const { metadataContext, requestHeaders, requestBody, requestTrailers, responseHeaders, responseBody } = message;
    if (metadataContext && (this.phase === 'headers' || this.phase === 'body'))
      this.subset = subsetOf(metadataContext.filterMetadata) ?? this.subset;
    if (requestHeaders)
      this.takeRequestHeaders(requestHeaders.headers?.headers ?? [], requestHeaders.endOfStream === true);
    else if (requestBody) this.takeRequestBody(requestBody);
    else if (requestTrailers) {
      // They end a body whose last piece did not say so.
      this.hasTrailers = true;
      if (this.phase === 'body') this.whole();
      else if (this.phase === 'answered') this.sink.write({ requestTrailers: {} });
    } else if (responseHeaders) {
      const { headers, endOfStream = false } = responseHeaders;
      this.takeResponseHeaders(headers?.headers ?? [], endOfStream, servedOf(metadataContext?.filterMetadata));
    } else if (responseBody) this.takeResponseBody(responseBody);
    else if (message.responseTrailers) {
      const held = this.reader?.pass(noBytes, true) ?? noBytes;
      if (held.length > 0) writePieces(this.sink, 'responseBody', held, false);
      this.sink.write({ responseTrailers: {}, dynamicMetadata: this.reader?.facts?.() });
      this.finish(true);
    }
  }

  /** The proxy half-closed or reset the stream, or the connection is gone. */
  closed(): void {
    if (this.phase !== 'over') this.end();
  }

  stripHeaders(): void {
    for (const name of this.headers.keys()) {
      if (!controlHeaders.has(name) && (this.isTrusted || name !== policyClassHeader)) continue;
      this.removed.push(name);
      this.headers.delete(name);
    }
  }

  bodyBytes(): number {
    return this.received.length;
  }

  onEnd(done: (isSent: boolean) => void): void {
    if (this.isSent === undefined) this.done = done;
    else done(this.isSent);
  }

  evict(answer: () => HttpErrorResponse): void {
    this.refuse(answer());
  }

  /** Answers in place of a server, and breaks off what has begun. */
  refuse({ status, headers, body }: HttpErrorResponse, details = ''): void {
    if (this.phase === 'over') return;
    this.phase = 'over';
    this.status = status;
    this.isRefused = true;
    const answer = { headers: { setHeaders: setting(headers) }, body: Buffer.from(body), details };
    this.sink.write({ immediateResponse: { status: { code: status }, ...answer } });
    this.end();
  }

  /** Sends the request on to one of `destinations`, `ip:port` each, best first. */
  proceedTo(destinations: readonly string[], facts?: Struct): void {
    if (this.phase !== 'deciding') return;
    this.phase = 'answered';
    const { body, hasNoBody } = this;
    const text = destinations.join(',');
    const own: Record<string, string> = { [destinationHeader]: text };
    if (!this.headers.get(requestIdHeader)) own[requestIdHeader] = this.id;
    if (!hasNoBody) own['content-length'] = String(body.length);
    const response = {
      headerMutation: { setHeaders: setting(own), removeHeaders: this.removed.filter((name) => !(name in own)) },
      clearRouteCache: true,
    };
    const fields = { [destinationHeader]: { stringValue: text }, ...facts?.fields };
    const dynamicMetadata = { fields: { [lb]: { structValue: { fields } } } };
    if (this.modes.requestBodyMode === bodyModes.buffered && !hasNoBody) {
      const bodyMutation = body === this.received ? undefined : { body };
      this.sink.write({ requestBody: { response: Object.assign(response, { bodyMutation }) }, dynamicMetadata });
    } else {
      this.sink.write({ requestHeaders: { response }, dynamicMetadata });
      if (!hasNoBody) writePieces(this.sink, 'requestBody', body, !this.hasTrailers);
    }
    if (this.hasTrailers) this.sink.write({ requestTrailers: {} });
    // It is not needed again.
    this.body = noBytes;
    this.received = noBytes;
  }

  private takeRequestHeaders(headers: readonly HeaderValue[], isLast: boolean): void {
    if (this.phase !== 'headers') return void this.end(grpc.invalidArgument, 'request_headers came twice');
    this.headers = fieldsOf(headers);
    this.id = this.headers.get(requestIdHeader) || randomUUID();
    this.hasNoBody = isLast || this.modes.requestBodyMode === bodyModes.none;
    this.phase = 'body';
    if (this.hasNoBody) this.whole();
    // In this mode the proxy waits for the answer, and reads the body then.
    else if (this.modes.requestBodyMode === bodyModes.buffered) this.sink.write({ requestHeaders: {} });
  }

  private takeRequestBody({ body, endOfStream = false }: BodyPiece): void {
    if (this.phase === 'headers') this.end(grpc.invalidArgument, 'request_body came before request_headers');
    // Envoy from 1.35 on may tell the end twice.
    if (this.phase !== 'body') return;
    const { maxRequestBytes } = this.decider;
    if (this.gathered.length + body.length > maxRequestBytes) {
      this.refuse(tooLargeResponse(maxRequestBytes, 'openai'));
    } else if (!this.decider.reserve(body.length)) {
      this.refuse(openaiError(503, 'Too many requests are being read.', 'ERR_FLOW_READING'));
    } else {
      if (body.length > 0) this.gathered.push(body);
      if (endOfStream) this.whole();
    }
  }

  private whole(): void {
    this.phase = 'deciding';
    const parts = this.gathered.parts();
    const [first = noBytes] = parts;
    this.received = parts.length < 2 ? Buffer.from(first.buffer, first.byteOffset, first.length) : Buffer.concat(parts);
    this.body = this.received;
    this.decider.reserve(-this.gathered.length);
    this.gathered.length = 0;
    parts.length = 0;
    this.decider.decide(this);
  }

  /** It may be an answer of the proxy itself, to a request that was never decided. */
  private takeResponseHeaders(headers: readonly HeaderValue[], isLast: boolean, served: string | undefined): void {
    const fields = fieldsOf(headers);
    this.status = Number(fields.get(':status') ?? fields.get('status') ?? 0);
    if (this.flow !== undefined) this.decider.responded(this, fields, served);
    if (this.isSent !== undefined) return; // a hook failed
    const removeHeaders = [...fields.keys()].filter((name) => controlHeaders.has(name));
    if (this.reader?.keepsLength === false) removeHeaders.push('content-length');
    const headerMutation = removeHeaders.length === 0 ? undefined : { removeHeaders };
    this.sink.write({ responseHeaders: headerMutation === undefined ? {} : { response: { headerMutation } } });
    if (isLast) this.finish(true);
  }

  private takeResponseBody({ body, endOfStream = false }: BodyPiece): void {
    const passed = this.reader?.pass(body, endOfStream) ?? body;
    const facts = endOfStream ? this.reader?.facts?.() : undefined;
    if (this.modes.responseBodyMode !== bodyModes.fullDuplex) {
      const response = passed === body ? undefined : { bodyMutation: { body: passed } };
      this.sink.write({ responseBody: { response }, dynamicMetadata: facts });
    } else if (passed.length > 0 || endOfStream) writePieces(this.sink, 'responseBody', passed, endOfStream, facts);
    if (endOfStream) this.finish(true);
  }

  /** Ends the exchange: with a status of gRPC where the proxy, or this process, is at fault. */
  end(code?: number, details?: string): void {
    this.phase = 'over';
    this.finish(false);
    this.sink.end(code, details);
  }

  private finish(isSent: boolean): void {
    if (this.isSent !== undefined) return;
    this.isSent = isSent;
    this.decider.reserve(-this.gathered.length);
    this.gathered.length = 0;
    this.done?.(isSent);
    this.decider.ended(this);
  }
}

type Modes = Required<NonNullable<ProcessingRequest['protocolConfig']>>;

/** Undefined for a mode in which an endpoint can be chosen by what is in the body. */
function faultOf({ requestBodyMode, responseBodyMode }: Modes): string | undefined {
  const { fullDuplex, buffered, streamed, none } = bodyModes;
  const isKnown = [fullDuplex, buffered, none].some((mode) => mode === requestBodyMode);
  if (isKnown && (responseBodyMode <= buffered || responseBodyMode === fullDuplex)) return undefined;
  const got = requestBodyMode === streamed ? 'STREAMED' : `${requestBodyMode} and ${responseBodyMode}`;
  return `processing_mode: expected FULL_DUPLEX_STREAMED or BUFFERED bodies; got ${got}`;
}

type BodyPart = 'requestBody' | 'responseBody';

/** Facts go with the last piece. */
function writePieces(sink: ExtProcSink, part: BodyPart, bytes: Uint8Array, isEnd: boolean, facts?: Struct): void {
  for (let at = 0; at === 0 || at < bytes.length; at += longestPiece) {
    const body = bytes.length <= longestPiece ? bytes : bytes.subarray(at, at + longestPiece);
    const isLast = at + longestPiece >= bytes.length;
    const response = { bodyMutation: { streamedResponse: { body, endOfStream: isEnd && isLast } } };
    sink.write({ [part]: { response }, dynamicMetadata: isLast ? facts : undefined });
  }
}

/** Envoy overwrites unless it is told to append, and looks at nothing else; others read the action. */
const overwriteOrAdd = 2;

function setting(headers: Readonly<Record<string, string>>): NonNullable<HeaderMutation['setHeaders']> {
  return Object.entries(headers).map(([key, value]) => ({
    header: { key, rawValue: Buffer.from(value) },
    appendAction: overwriteOrAdd,
  }));
}

function fieldsOf(headers: readonly HeaderValue[]): Map<string, string> {
  const fields = new Map<string, string>();
  for (const { key, value, rawValue } of headers) {
    const text = rawValue && rawValue.length > 0 ? textOf(rawValue) : (value ?? '');
    const before = fields.get(key);
    fields.set(key, before === undefined ? text : `${before}, ${text}`);
  }
  return fields;
}

const textOf = (bytes: Uint8Array): string => (Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes)).toString('latin1');

type FilterMetadata = Readonly<Record<string, Struct>> | undefined;

/** Undefined for a hint that is no list. */
function subsetOf(metadata: FilterMetadata): readonly string[] | undefined {
  return metadata?.[subsetHint]?.fields?.[subsetKey]?.listValue?.values?.map(({ stringValue }) => stringValue ?? '');
}

const servedOf = (metadata: FilterMetadata): string | undefined =>
  metadata?.[lb]?.fields?.[servedKey]?.stringValue ?? undefined;
