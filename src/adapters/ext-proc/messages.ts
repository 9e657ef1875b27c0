/** Messages of Envoy's external processing, and their bytes. Source: Envoy's API, `external_processor.proto`. */
import protobuf from 'protobufjs';

export interface HeaderValue {
  readonly key: string;
  readonly value?: string | undefined;
  /** Envoy fills this one. */
  readonly rawValue?: Uint8Array | undefined;
}

interface HeaderMap {
  readonly headers?: readonly HeaderValue[] | undefined;
}

export interface BodyPiece {
  readonly body: Uint8Array;
  readonly endOfStream?: boolean | undefined;
}

/** A value of a `google.protobuf.Struct`. */
export interface Value {
  readonly stringValue?: string | undefined;
  readonly numberValue?: number | undefined;
  readonly structValue?: Struct | undefined;
  readonly listValue?: { readonly values?: readonly Value[] | undefined } | undefined;
}

export interface Struct {
  readonly fields?: Readonly<Record<string, Value>> | undefined;
}

/** The parts of an exchange. */
type Parts<Headers, Body> = { readonly [Part in 'requestHeaders' | 'responseHeaders']?: Headers } & {
  readonly [Part in 'requestBody' | 'responseBody']?: Body;
} & { readonly [Part in 'requestTrailers' | 'responseTrailers']?: object | null };

type HttpHeaders = { readonly headers?: HeaderMap | null; readonly endOfStream?: boolean };

/** What a proxy sends: one of the parts of an exchange, and what it knows beside it. */
export interface ProcessingRequest extends Parts<HttpHeaders | null, BodyPiece | null> {
  readonly metadataContext?: { readonly filterMetadata?: Readonly<Record<string, Struct>> } | null;
  /** In the first message only: how the proxy sends bodies. */
  readonly protocolConfig?: { readonly requestBodyMode?: number; readonly responseBodyMode?: number } | null;
}

export interface HeaderMutation {
  readonly setHeaders?: readonly { readonly header: HeaderValue; readonly appendAction: number }[] | undefined;
  readonly removeHeaders?: readonly string[] | undefined;
}

interface CommonResponse {
  readonly headerMutation?: HeaderMutation | undefined;
  readonly bodyMutation?: { readonly body: Uint8Array } | { readonly streamedResponse: BodyPiece } | undefined;
  readonly clearRouteCache?: boolean | undefined;
}

type PartResponse = { readonly response?: CommonResponse | undefined };

/** The answer to one part, or to the whole. */
export interface ProcessingResponse extends Parts<PartResponse, PartResponse> {
  readonly immediateResponse?: {
    readonly status: { readonly code: number };
    readonly headers: HeaderMutation;
    readonly body: Uint8Array;
    readonly details: string;
  };
  readonly dynamicMetadata?: Struct | undefined;
}

/** Enumerations are numbers here: both have the same bytes. */
const protocol = `
syntax = "proto3";
package envoy.service.ext_proc.v3;
message ListValue { repeated Value values = 1; }
message Value {
  oneof kind {
    int32 null_value = 1; double number_value = 2; string string_value = 3; bool bool_value = 4;
    Struct struct_value = 5; ListValue list_value = 6;
  }
}
message Struct { map<string, Value> fields = 1; }
message Metadata { map<string, Struct> filter_metadata = 1; }
message HeaderValue { string key = 1; string value = 2; bytes raw_value = 3; }
message HeaderMap { repeated HeaderValue headers = 1; }
message HeaderValueOption { HeaderValue header = 1; int32 append_action = 3; }
message HeaderMutation { repeated HeaderValueOption set_headers = 1; repeated string remove_headers = 2; }
message HttpHeaders { HeaderMap headers = 1; bool end_of_stream = 3; }
message HttpBody { bytes body = 1; bool end_of_stream = 2; }
message HttpTrailers { HeaderMap trailers = 1; }
message ProtocolConfiguration { int32 request_body_mode = 1; int32 response_body_mode = 2; }
message ProcessingRequest {
  oneof request {
    HttpHeaders request_headers = 2; HttpHeaders response_headers = 3; HttpBody request_body = 4;
    HttpBody response_body = 5; HttpTrailers request_trailers = 6; HttpTrailers response_trailers = 7;
  }
  Metadata metadata_context = 8;
  ProtocolConfiguration protocol_config = 11;
}
message BodyMutation { oneof mutation { bytes body = 1; bool clear_body = 2; HttpBody streamed_response = 3; } }
message CommonResponse {
  int32 status = 1; HeaderMutation header_mutation = 2; BodyMutation body_mutation = 3; bool clear_route_cache = 5;
}
message PartResponse { CommonResponse response = 1; }
message TrailersResponse { HeaderMutation header_mutation = 1; }
message HttpStatus { int32 code = 1; }
message ImmediateResponse { HttpStatus status = 1; HeaderMutation headers = 2; bytes body = 3; string details = 5; }
message ProcessingResponse {
  oneof response {
    PartResponse request_headers = 1; PartResponse response_headers = 2; PartResponse request_body = 3;
    PartResponse response_body = 4; TrailersResponse request_trailers = 5; TrailersResponse response_trailers = 6;
    ImmediateResponse immediate_response = 7;
  }
  Struct dynamic_metadata = 8;
}
`;

interface Codec<T> {
  encode(message: T): Buffer;
  /** @throws Error for bytes that are no such message */
  decode(bytes: Buffer): T;
}

/** The codec of a message type of `protocol`. Unknown fields are skipped. */
export function codecOf<T extends object>(name: string): Codec<T> {
  const type = root.lookupType(`envoy.service.ext_proc.v3.${name}`);
  return {
    encode: (message) => type.encode(message as Record<string, unknown>).finish() as Buffer,
    decode: (bytes) => type.decode(bytes) as unknown as T,
  };
}

const { root } = protobuf.parse(protocol);
