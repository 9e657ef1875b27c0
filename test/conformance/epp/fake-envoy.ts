/** A proxy as the vectors play it: streams of ext_proc over real gRPC, and what its server and its client would see. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client, type ClientDuplexStream, credentials, type StatusObject } from '@grpc/grpc-js';
import {
  codecOf,
  type HeaderMutation,
  type ProcessingRequest,
  type ProcessingResponse,
  type Struct,
} from '../../../src/adapters/ext-proc/messages.js';

const path = '/envoy.service.ext_proc.v3.ExternalProcessor/Process';
const request = codecOf<ProcessingRequest>('ProcessingRequest');
const response = codecOf<ProcessingResponse>('ProcessingResponse');

export type Headers = Map<string, string>;

/** One direction of an exchange after the picker's changes. */
export class Side {
  sent: Headers = new Map();
  seen: Headers | undefined = undefined;
  /** Each byte as a character. */
  body = '';
  isOver = false;

  apply({ setHeaders = [], removeHeaders = [] }: HeaderMutation = {}): void {
    const seen = new Map(this.sent);
    for (const name of removeHeaders) seen.delete(name.toLowerCase());
    for (const { header } of setHeaders)
      seen.set(header.key.toLowerCase(), Buffer.from(header.rawValue ?? []).toString() || (header.value ?? ''));
    this.seen = seen;
  }
}

export interface Immediate {
  readonly status: number;
  readonly headers: Headers;
  readonly body: string;
}

export class ProxyStream {
  readonly toServer: Side = new Side();
  readonly toClient: Side = new Side();
  /** By namespace and name, what the picker told; the last value counts. */
  readonly told: Map<string, Map<string, unknown>> = new Map();
  immediate: Immediate | undefined = undefined;
  status: StatusObject | undefined = undefined;
  messages = 0;
  isCancelled = false;
  private readonly call: ClientDuplexStream<ProcessingRequest, ProcessingResponse>;

  constructor(client: Client) {
    this.call = client.makeBidiStreamRequest(path, request.encode, response.decode);
    this.call.on('data', (message: ProcessingResponse) => this.take(message));
    this.call.on('error', () => {});
    this.call.on('status', (status) => {
      this.status = status;
    });
  }

  send(message: ProcessingRequest): void {
    this.call.write(message);
  }

  close(): void {
    this.call.end();
  }

  cancel(): void {
    this.isCancelled = true;
    this.call.cancel();
  }

  private take(message: ProcessingResponse): void {
    this.messages++;
    const { requestHeaders, requestBody, responseHeaders, responseBody, responseTrailers, immediateResponse } = message;
    for (const [namespace, { structValue }] of Object.entries(message.dynamicMetadata?.fields ?? {}))
      this.told.set(namespace, new Map([...(this.told.get(namespace) ?? []), ...valuesOf(structValue)]));
    if (requestHeaders) this.toServer.apply(requestHeaders.response?.headerMutation);
    else if (requestBody) add(this.toServer, requestBody);
    else if (responseHeaders) this.toClient.apply(responseHeaders.response?.headerMutation);
    else if (responseBody) add(this.toClient, responseBody);
    else if (responseTrailers) this.toClient.isOver = true;
    else if (immediateResponse) {
      const side = new Side();
      side.apply(immediateResponse.headers);
      const { status, body } = immediateResponse;
      this.immediate = { status: status.code, headers: side.seen ?? new Map(), body: Buffer.from(body).toString() };
    }
  }
}

function valuesOf(struct: Struct | undefined): [string, unknown][] {
  return Object.entries(struct?.fields ?? {}).map(([name, { stringValue, numberValue, structValue }]) => [
    name,
    structValue ? Object.fromEntries(valuesOf(structValue)) : stringValue || numberValue,
  ]);
}

function add(side: Side, { response }: NonNullable<ProcessingResponse['requestBody']>): void {
  const mutation = response?.bodyMutation;
  if (!mutation || !('streamedResponse' in mutation) || !mutation.streamedResponse) return;
  const { body, endOfStream } = mutation.streamedResponse;
  side.body += Buffer.from(body ?? []).toString('latin1');
  if (endOfStream) side.isOver = true;
}

/** In plain text, or with the authority of a folder of certificates. */
export function connectTo(port: number, certificates?: string): Client {
  if (certificates === undefined) return new Client(`127.0.0.1:${port}`, credentials.createInsecure());
  return new Client(`localhost:${port}`, credentials.createSsl(readFileSync(join(certificates, 'ca.pem'))));
}
