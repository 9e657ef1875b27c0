/** Our `.proto` beside Envoy's own: what one writes the other reads. */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import protobuf from 'protobufjs';
import { describe, expect, it } from 'vitest';
import { codecOf } from '../../../src/adapters/ext-proc/messages.js';

const require = createRequire(import.meta.url);
const folderOf = (name: string): string => dirname(require.resolve(`${name}/package.json`));
const deps = join(folderOf('@grpc/grpc-js-xds'), 'deps');
const folders = [
  ...['envoy-api', 'xds', 'googleapis', 'protoc-gen-validate'].map((name) => join(deps, name)),
  folderOf('protobufjs'),
];

const root = new protobuf.Root();
root.resolvePath = (_origin, file) => folders.map((folder) => join(folder, file)).find(existsSync) ?? file;
root.loadSync('envoy/service/ext_proc/v3/external_processor.proto');
const envoy = root.lookup('envoy.service.ext_proc.v3') as protobuf.Namespace;
// The package has an older API, without what full-duplex bodies need.
const ofType = (name: string, fields: Readonly<Record<string, [number, string]>>): protobuf.Type => {
  const type = new protobuf.Type(name);
  for (const [field, [id, kind]] of Object.entries(fields)) type.add(new protobuf.Field(field, id, kind));
  return type;
};
envoy.add(ofType('StreamedBodyResponse', { body: [1, 'bytes'], endOfStream: [2, 'bool'] }));
envoy.add(ofType('ProtocolConfiguration', { requestBodyMode: [1, 'int32'], responseBodyMode: [2, 'int32'] }));
const bodyMutation = envoy.lookupType('BodyMutation');
const streamed = new protobuf.Field('streamedResponse', 3, 'StreamedBodyResponse');
bodyMutation.add(streamed);
bodyMutation.oneofs.mutation?.add(streamed);
const request = envoy.lookupType('ProcessingRequest');
if (request.fields.protocolConfig === undefined)
  request.add(new protobuf.Field('protocolConfig', 11, 'ProtocolConfiguration'));

const bytes = fc.uint8Array({ maxLength: 300 }).map((each) => Buffer.from(each));
const header = fc.record({ key: fc.string({ unit: 'grapheme' }), rawValue: bytes });
const headers = fc.record({ headers: fc.array(header, { maxLength: 9 }) });
const part = fc.record({ headers, endOfStream: fc.boolean() });
const piece = fc.record({ body: bytes, endOfStream: fc.boolean() });
const { struct } = fc.letrec((tie) => ({
  struct: fc.record({ fields: fc.dictionary(fc.string(), tie('value'), { maxKeys: 3 }) }),
  value: fc.oneof(
    { maxDepth: 3 },
    fc.record({ stringValue: fc.string() }),
    fc.record({ numberValue: fc.double({ noNaN: true }) }),
    fc.record({ boolValue: fc.boolean() }),
    fc.record({ structValue: tie('struct') }),
    fc.record({ listValue: fc.record({ values: fc.array(tie('value'), { maxLength: 3 }) }) }),
  ),
}));
const mutation = fc.record({
  setHeaders: fc.array(fc.record({ header, appendAction: fc.constant(2) }), { maxLength: 5 }),
  removeHeaders: fc.array(fc.string(), { maxLength: 5 }),
});
const common = fc.record({
  response: fc.record({
    headerMutation: mutation,
    bodyMutation: fc.oneof(fc.record({ body: bytes }), fc.record({ streamedResponse: piece })),
    clearRouteCache: fc.boolean(),
  }),
});
const immediateResponse = fc.record({
  status: fc.record({ code: fc.constantFrom(400, 413, 429, 500, 503) }),
  headers: mutation,
  body: bytes,
  details: fc.string(),
});
const one = (...choices: readonly fc.Arbitrary<object>[]): fc.Arbitrary<object> => fc.oneof(...choices);
const named = <K extends string>(key: K, value: fc.Arbitrary<unknown>): fc.Arbitrary<object> =>
  value.map((each) => ({ [key]: each }));

const requests = fc
  .tuple(
    one(
      named('requestHeaders', part),
      named('responseHeaders', part),
      named('requestBody', piece),
      named('responseBody', piece),
      named('requestTrailers', fc.record({ trailers: headers })),
      named('responseTrailers', fc.record({ trailers: headers })),
    ),
    fc.record({
      metadataContext: fc.record({ filterMetadata: fc.dictionary(fc.string(), struct, { maxKeys: 3 }) }),
      protocolConfig: fc.record({ requestBodyMode: fc.nat(5), responseBodyMode: fc.nat(5) }),
    }),
  )
  .map(([which, rest]) => ({ ...which, ...rest }));
const responses = fc
  .tuple(
    one(
      named('requestHeaders', common),
      named('responseHeaders', common),
      named('requestBody', common),
      named('responseBody', common),
      named('requestTrailers', fc.record({ headerMutation: mutation })),
      named('immediateResponse', immediateResponse),
    ),
    fc.record({ dynamicMetadata: struct }),
  )
  .map(([which, rest]) => ({ ...which, ...rest }));

/** As plain objects, so that both codecs can be compared. */
function plain(type: protobuf.Type, encoded: Uint8Array): object {
  return type.toObject(type.decode(encoded), { longs: Number, enums: Number, bytes: String, defaults: true });
}

describe('messages', () => {
  it('of a proxy are read as Envoy wrote them', () => {
    const codec = codecOf<object>('ProcessingRequest');
    fc.assert(
      fc.property(requests, (message) => {
        const written = request.encode(message).finish();
        expect(plain(request, codec.encode(codec.decode(Buffer.from(written))))).toEqual(plain(request, written));
      }),
    );
  });

  it('of ours are read by Envoy as they were meant', () => {
    const codec = codecOf<object>('ProcessingResponse');
    const response = envoy.lookupType('ProcessingResponse');
    fc.assert(
      fc.property(responses, (message) => {
        expect(plain(response, codec.encode(message))).toEqual(plain(response, response.encode(message).finish()));
      }),
    );
  });

  it('with fields that nobody knows are read, and these fields skipped', () => {
    const codec = codecOf<{ observabilityMode?: boolean; requestBody?: object }>('ProcessingRequest');
    const written = request.encode({ requestBody: { body: Buffer.from('a') }, observabilityMode: true }).finish();
    const read = codec.decode(Buffer.from(written));
    expect([read.observabilityMode, read.requestBody]).toMatchObject([undefined, { body: Buffer.from('a') }]);
  });

  it('whose bytes are broken are an error, whatever they are', () => {
    const codec = codecOf<object>('ProcessingRequest');
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (random) => {
        try {
          expect(codec.decode(Buffer.from(random))).toBeTypeOf('object');
        } catch (error) {
          expect(error).toBeInstanceOf(Error);
        }
      }),
    );
  });
});
