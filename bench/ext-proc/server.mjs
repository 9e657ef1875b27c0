// One server of ext_proc in a process of its own: `bare` answers one endpoint and sends everything on, as one would write
// it by hand with grpc-js; `headgate` is the picker of `headgate epp`, with flow control, log and metrics.
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import grpc from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { createEpp, lineLog, loadEppConfig } from '../../dist/gateway.js';

const file = fileURLToPath(new URL('ext_proc.proto', import.meta.url));
const { ExternalProcessor } = grpc.loadPackageDefinition(loadSync(file)).envoy.service.ext_proc.v3;
const destination = 'x-gateway-destination-endpoint';
const endpoint = '127.0.0.1:8000';

function pieces(part, body, endOfStream) {
  return { [part]: { response: { bodyMutation: { streamedResponse: { body, endOfStream } } } } };
}

function bare(call) {
  const parts = [];
  call.on('data', ({ requestHeaders, requestBody, responseHeaders, responseBody }) => {
    if (requestHeaders) return;
    if (responseHeaders) call.write({ responseHeaders: {} });
    else if (responseBody) call.write(pieces('responseBody', responseBody.body, responseBody.endOfStream));
    else if (requestBody) {
      parts.push(requestBody.body);
      if (!requestBody.endOfStream) return;
      const body = Buffer.concat(parts);
      if (typeof JSON.parse(body).model !== 'string') throw new Error('no model');
      const header = { key: destination, rawValue: Buffer.from(endpoint) };
      const set = { setHeaders: [{ header, appendAction: 2 }] };
      const fields = { [destination]: { stringValue: endpoint } };
      const dynamicMetadata = { fields: { 'envoy.lb': { structValue: { fields } } } };
      call.write({ requestHeaders: { response: { headerMutation: set, clearRouteCache: true } }, dynamicMetadata });
      call.write(pieces('requestBody', body, true));
    }
  });
  call.on('end', () => call.end());
  call.on('error', () => {});
}

const starts = {
  bare: () =>
    new Promise((resolve, reject) => {
      const server = new grpc.Server();
      server.addService(ExternalProcessor.service, { Process: bare });
      const credentials = grpc.ServerCredentials.createInsecure();
      server.bindAsync('127.0.0.1:0', credentials, (error, port) => (error ? reject(error) : resolve(port)));
    }),
  async headgate() {
    const path = join(mkdtempSync(join(tmpdir(), 'headgate-bench-')), 'endpoints.yaml');
    writeFileSync(path, 'endpoints: [{ name: a, address: 127.0.0.1, port: "8000" }]');
    const config = `
kind: EndpointPickerConfig
apiVersion: llm-d.ai/v1alpha1
featureGates: [flowControl]
plugins:
- { type: file-discovery, parameters: { path: ${JSON.stringify(path)} } }
- { type: concurrency-detector, parameters: { maxConcurrency: 1000 } }
flowControl:
  saturationDetector: { pluginRef: concurrency-detector }
headgate: { host: 127.0.0.1, port: 0, healthPort: 0, metricsPort: 0, trust: true }
`;
    const { ports } = await createEpp(loadEppConfig(config), { log: lineLog('json', () => {}) });
    return ports.port;
  },
};

process.send(await starts[process.argv[2]]());
process.on('message', () => process.send({ ...process.cpuUsage(), rss: process.memoryUsage().rss }));
