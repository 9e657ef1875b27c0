/** A proxy as the vectors play it: streams of ext_proc over real gRPC, and what its server and its client would see. */
import { Client, type ClientDuplexStream, credentials, type StatusObject } from '@grpc/grpc-js';
import { codecOf, type ProcessingRequest, type ProcessingResponse } from '../../../src/adapters/ext-proc/messages.js';

const path = '/envoy.service.ext_proc.v3.ExternalProcessor/Process';
const request = codecOf<ProcessingRequest>('ProcessingRequest');
const response = codecOf<ProcessingResponse>('ProcessingResponse');

export type Headers = Map<string, string>;

interface Mutation {
  readonly setHeaders?: readonly { readonly header: { key: string; value?: string; rawValue?: Uint8Array } }[];
  readonly removeHeaders?: readonly string[];
}

/** One direction of an exchange after the picker's changes. */
export class Side {
  sent: Headers = new Map();
  seen: Headers | undefined = undefined;
  body = '';
  isOver = false;

  apply({ setHeaders = [], removeHeaders = [] }: Mutation = {}): void {
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
}

export class ProxyStream {
  readonly toServer = new Side();
  readonly toClient = new Side();
  immediate: Immediate | undefined = undefined;
  destination: string | undefined = undefined;
  status: StatusObject | undefined = undefined;
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
    this.call.cancel();
  }

  private take(message: ProcessingResponse): void {
    const { requestHeaders, requestBody, responseHeaders, responseBody, responseTrailers, immediateResponse } = message;
    if (requestHeaders) {
      this.toServer.apply(requestHeaders.response?.headerMutation as Mutation | undefined);
      const fields = message.dynamicMetadata?.fields?.['envoy.lb']?.structValue?.fields;
      this.destination = fields?.['x-gateway-destination-endpoint']?.stringValue;
    } else if (requestBody) add(this.toServer, requestBody);
    else if (responseHeaders) this.toClient.apply(responseHeaders.response?.headerMutation as Mutation | undefined);
    else if (responseBody) add(this.toClient, responseBody);
    else if (responseTrailers) this.toClient.isOver = true;
    else if (immediateResponse) {
      const side = new Side();
      side.apply(immediateResponse.headers as Mutation);
      this.immediate = { status: immediateResponse.status.code, headers: side.seen ?? new Map() };
    }
  }
}

function add(side: Side, { response }: NonNullable<ProcessingResponse['requestBody']>): void {
  const mutation = response?.bodyMutation;
  if (mutation === undefined || !('streamedResponse' in mutation) || !mutation.streamedResponse) return;
  const { body, endOfStream } = mutation.streamedResponse;
  side.body += Buffer.from(body ?? []).toString('latin1');
  if (endOfStream) side.isOver = true;
}

export function connectTo(port: number): Client {
  return new Client(`127.0.0.1:${port}`, credentials.createInsecure());
}
