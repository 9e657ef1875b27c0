// @ts-check
// An endpoint picker: a proxy such as Envoy asks it by gRPC for every request, and holds the request until the answer
// comes. Two servers with one seat each; the third request waits until the first answer has ended.
import { Client, credentials } from '@grpc/grpc-js';
import { concurrencyDetector, EndpointPool, FlowController, subsetHint } from 'headgate';
import { flowControl, serveExtProc } from 'headgate/ext-proc';
import protobuf from 'protobufjs';

const pool = new EndpointPool();
pool.add('10.0.0.1:8000');
pool.add('10.0.0.2:8000');
const flow = new FlowController({
  pool,
  saturationDetector: concurrencyDetector({ maxConcurrency: 1 }),
  endpointFilters: [subsetHint({ heedsPorts: true })],
});
const server = await serveExtProc(flowControl(flow, { pool, trust: true }), { host: '127.0.0.1', port: 0 });

// What follows plays the proxy, with the few fields of its protocol that are needed here.
const { root } = protobuf.parse(`syntax = "proto3";
  message HeaderValue { string key = 1; bytes raw_value = 3; }
  message HeaderMap { repeated HeaderValue headers = 1; }
  message HttpHeaders { HeaderMap headers = 1; bool end_of_stream = 3; }
  message HttpBody { bytes body = 1; bool end_of_stream = 2; }
  message Request {
    HttpHeaders request_headers = 2; HttpHeaders response_headers = 3; HttpBody request_body = 4; HttpBody response_body = 5;
  }
  message Option { HeaderValue header = 1; }
  message Mutation { repeated Option set_headers = 1; }
  message Common { Mutation header_mutation = 2; }
  message Part { Common response = 1; }
  message Response { Part request_headers = 1; }`);
const [request, response] = [root.lookupType('Request'), root.lookupType('Response')];
const proxy = new Client(`127.0.0.1:${server.port}`, credentials.createInsecure());

function ask(/** @type {string} */ tenant) {
  const headers = Object.entries({ ':path': '/v1/chat/completions', 'x-llm-d-inference-fairness-id': tenant });
  const call = proxy.makeBidiStreamRequest(
    '/envoy.service.ext_proc.v3.ExternalProcessor/Process',
    (/** @type {object} */ message) => Buffer.from(request.encode(message).finish()),
    (bytes) => /** @type {any} */ (response.decode(bytes)),
  );
  call.on('data', ({ requestHeaders }) => {
    for (const { header } of requestHeaders?.response?.headerMutation?.setHeaders ?? [])
      if (header.key === 'x-gateway-destination-endpoint') console.log(`${tenant}: to ${header.rawValue}`);
  });
  call.on('error', () => {});
  const map = { headers: headers.map(([key, value]) => ({ key, rawValue: Buffer.from(value) })) };
  call.write({ requestHeaders: { headers: map } });
  call.write({ requestBody: { body: Buffer.from('{"model":"m","messages":[]}'), endOfStream: true } });
  return () => {
    call.write({ responseHeaders: { headers: { headers: [{ key: ':status', rawValue: Buffer.from('200') }] } } });
    call.write({ responseBody: { body: Buffer.from('{}'), endOfStream: true } });
    call.end();
  };
}

/** @param {() => boolean} isTrue */
async function until(isTrue) {
  while (!isTrue()) await new Promise((resolve) => setTimeout(resolve, 10));
}

const [first, second, third] = [ask('acme'), ask('acme'), ask('zenith')];
await until(() => flow.stats().waiting === 1);
console.log('one waits; now the first answer ends');
first?.();
await until(() => flow.stats().dispatched === 3);
second?.();
third?.();
await until(() => flow.stats().inFlight === 0);
proxy.close();
await flow.close();
await server.close(1_000);
