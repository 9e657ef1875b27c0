/** A controller with servers, and streams of a proxy without a transport. */

import type { ExtProcRequest } from '../../../src/adapters/ext-proc/ext-proc-stream.js';
import type {
  ExtProcOptions,
  ExtProcStream,
  ProcessingRequest,
  ProcessingResponse,
} from '../../../src/adapters/ext-proc/index.js';
import { flowControl } from '../../../src/adapters/ext-proc/index.js';
import type { HttpFlowRequest } from '../../../src/adapters/http/index.js';
import {
  concurrencyDetector,
  EndpointPool,
  FlowController,
  type FlowControllerOptions,
  subsetHint,
} from '../../../src/index.js';

export type Part = keyof ProcessingResponse;

/** One stream, and what was written to it. */
export class FakeProxy {
  readonly written: ProcessingResponse[] = [];
  /** How the stream ended. */
  end: { readonly code: number; readonly details: string } | undefined = undefined;
  /** Messages after the end: there may be none. */
  late = 0;
  readonly stream: ExtProcStream;

  constructor(open: ReturnType<typeof flowControl>) {
    this.stream = open({
      write: (message) => {
        if (this.end !== undefined) this.late++;
        this.written.push(message);
      },
      end: (code = 0, details = '') => {
        if (this.end !== undefined) this.late++;
        this.end = { code, details };
      },
    });
  }

  send(message: ProcessingRequest): this {
    this.stream.receive(message);
    return this;
  }

  headers(fields: Record<string, string> = {}, endOfStream = false, more: ProcessingRequest = {}): this {
    return this.send({
      ...more,
      requestHeaders: { headers: headersOf({ ':path': '/v1/completions', ...fields }), endOfStream },
    });
  }

  body(text = '{"model":"m"}', endOfStream = true): this {
    return this.send({ requestBody: { body: Buffer.from(text), endOfStream } });
  }

  /** A whole request. */
  ask(fields: Record<string, string> = {}, more: ProcessingRequest = {}): this {
    return this.headers(fields, false, more).body();
  }

  answerHeaders(
    fields: Record<string, string> = { ':status': '200' },
    endOfStream = false,
    more: ProcessingRequest = {},
  ): this {
    return this.send({ ...more, responseHeaders: { headers: headersOf(fields), endOfStream } });
  }

  answerBody(text: string, endOfStream = true): this {
    return this.send({ responseBody: { body: Buffer.from(text), endOfStream } });
  }

  /** The kinds of what was written, in order. */
  get parts(): string[] {
    return this.written.map((message) => Object.keys(message).find((key) => key !== 'dynamicMetadata') ?? '');
  }

  get refused():
    | { readonly status: number; readonly headers: Record<string, string>; readonly body: string }
    | undefined {
    const immediate = this.written.find(({ immediateResponse }) => immediateResponse)?.immediateResponse;
    if (immediate === undefined) return undefined;
    const { status, headers, body } = immediate;
    return { status: status.code, headers: settings(headers.setHeaders), body: Buffer.from(body).toString() };
  }

  /** Headers that the server gets set, and names that are taken off. */
  get decided(): { readonly set: Record<string, string>; readonly removed: readonly string[] } | undefined {
    const decision = this.written.find(
      (each) => each.requestHeaders?.response ?? each.requestBody?.response?.headerMutation,
    );
    const { headerMutation } = decision?.requestHeaders?.response ?? decision?.requestBody?.response ?? {};
    if (headerMutation === undefined) return undefined;
    return { set: settings(headerMutation.setHeaders), removed: headerMutation.removeHeaders ?? [] };
  }

  get destination(): string | undefined {
    return this.decided?.set['x-gateway-destination-endpoint'];
  }

  /** Bytes of a body as they go on. */
  passed(part: 'requestBody' | 'responseBody'): string {
    return this.written
      .map((message) => message[part]?.response?.bodyMutation)
      .map((mutation) =>
        mutation && 'streamedResponse' in mutation ? Buffer.from(mutation.streamedResponse.body) : '',
      )
      .join('');
  }
}

type Settings = NonNullable<NonNullable<ProcessingResponse['immediateResponse']>['headers']['setHeaders']>;

function settings(set: Settings = []): Record<string, string> {
  return Object.fromEntries(set.map(({ header }) => [header.key, Buffer.from(header.rawValue ?? []).toString()]));
}

export function headersOf(fields: Record<string, string>): { headers: { key: string; rawValue: Buffer }[] } {
  return { headers: Object.entries(fields).map(([key, value]) => ({ key, rawValue: Buffer.from(value) })) };
}

/** The metadata of a proxy that allows these endpoints. */
export function subset(...allowed: string[]): ProcessingRequest {
  const values = allowed.map((stringValue) => ({ stringValue }));
  const fields = { 'x-gateway-destination-endpoint-subset': { listValue: { values } } };
  return { metadataContext: { filterMetadata: { 'envoy.lb.subset_hint': { fields } } } };
}

export function served(endpoint: string): ProcessingRequest {
  const fields = { 'x-gateway-destination-endpoint-served': { stringValue: endpoint } };
  return { metadataContext: { filterMetadata: { 'envoy.lb': { fields } } } };
}

type Request = HttpFlowRequest<ExtProcRequest>;

/** Servers `10.0.0.1:8000` and so on, each with `seats`. */
export function rig({
  servers = 1,
  seats = 1,
  options = {},
  flow: given = {},
}: {
  servers?: number;
  seats?: number;
  options?: Partial<ExtProcOptions>;
  flow?: FlowControllerOptions<Request>;
} = {}) {
  const pool = new EndpointPool();
  for (let i = 1; i <= servers; i++) pool.add(`10.0.0.${i}:8000`);
  const flow = new FlowController<Request>({
    pool,
    saturationDetector: concurrencyDetector({ maxConcurrency: seats }),
    endpointFilters: [subsetHint({ heedsPorts: true })],
    ...given,
  });
  const handler = flowControl(flow, { pool, trust: true, contract: 'llm-d', ...options });
  return { pool, flow, open: () => new FakeProxy(handler) };
}
