/** The gRPC server that a proxy speaks to: the exchanges, and the health service. */
import { Server, ServerCredentials, type ServerDuplexStream } from '@grpc/grpc-js';
import { HealthImplementation } from 'grpc-health-check';
import type { ExtProcHandler } from './flow-control.js';
import { codecOf, type ProcessingRequest, type ProcessingResponse } from './messages.js';

export interface ServeExtProcOptions {
  /** @default '0.0.0.0' */
  host?: string | undefined;
  /** 0 takes a free one. @default 9002 */
  port?: number | undefined;
  /** Where only the health service is; the port of the exchanges has it too. @default none */
  healthPort?: number | undefined;
  /** PEM. @default plain text */
  tls?: { readonly cert: Buffer; readonly key: Buffer } | undefined;
  /** A longer message ends its stream with RESOURCE_EXHAUSTED; bytes. @default 4194304 */
  maxMessageBytes?: number | undefined;
}

export interface ExtProcServer {
  readonly port: number;
  readonly healthPort: number | undefined;
  /** Says what the health service answers; streams are served either way. */
  setServing(isServing: boolean): void;
  /** Takes no new streams, and resolves when those that are open have ended; after `graceMs` they are cut. */
  close(graceMs: number): Promise<void>;
}

const serviceName = 'envoy.service.ext_proc.v3.ExternalProcessor';
/** What probes ask for, besides the service by its own name. */
const healthNames: readonly string[] = ['', 'readiness', serviceName];

/** Serves ext_proc and gRPC's health, with `@grpc/grpc-js`, `grpc-health-check`, `protobufjs`. @throws if it cannot */
export async function serveExtProc(handler: ExtProcHandler, options: ServeExtProcOptions = {}): Promise<ExtProcServer> {
  const { host = '0.0.0.0', port = 9002, healthPort, tls, maxMessageBytes = 4_194_304 } = options;
  const request = codecOf<ProcessingRequest>('ProcessingRequest');
  const response = codecOf<ProcessingResponse>('ProcessingResponse');
  const process = {
    path: `/${serviceName}/Process`,
    requestStream: true,
    responseStream: true,
    requestDeserialize: request.decode,
    requestSerialize: request.encode,
    responseDeserialize: response.decode,
    responseSerialize: response.encode,
  };
  const server = new Server({
    'grpc.max_receive_message_length': maxMessageBytes,
    'grpc.max_concurrent_streams': 100_000,
    'grpc-node.flow_control_window': 1_048_576,
  });
  server.addService({ process }, { process: (call: Call) => connect(call, handler) });
  const health = new HealthImplementation({ liveness: 'SERVING' });
  const healthServer = healthPort === undefined ? undefined : new Server();
  for (const each of [server, healthServer]) if (each !== undefined) health.addToServer(each);
  const setServing = (isServing: boolean): void => {
    for (const name of healthNames) health.setStatus(name, isServing ? 'SERVING' : 'NOT_SERVING');
  };
  setServing(true);
  const credentials =
    tls === undefined
      ? ServerCredentials.createInsecure()
      : ServerCredentials.createSsl(null, [{ cert_chain: tls.cert, private_key: tls.key }]);
  const bound = await bind(server, `${host}:${port}`, credentials);
  return {
    setServing,
    port: bound,
    healthPort: healthServer && (await bind(healthServer, `${host}:${healthPort}`, ServerCredentials.createInsecure())),
    async close(graceMs: number) {
      const timer = setTimeout(() => server.forceShutdown(), graceMs);
      await new Promise<void>((resolve) => server.tryShutdown(() => resolve()));
      clearTimeout(timer);
      healthServer?.forceShutdown();
    },
  };
}

type Call = ServerDuplexStream<ProcessingRequest, ProcessingResponse>;

/** A proxy that does not read what it is told is not read from either. */
function connect(call: Call, handler: ExtProcHandler): void {
  const stream = handler({
    write(message) {
      if (call.write(message) || call.isPaused()) return;
      call.pause();
      call.once('drain', () => call.resume());
    },
    end(code = 0, details = '') {
      if (code === 0) call.end();
      else call.emit('error', { code, details });
    },
  });
  call.on('data', (message: ProcessingRequest) => stream.receive(message));
  for (const event of ['end', 'cancelled', 'error']) call.on(event, () => stream.closed());
}

function bind(server: Server, address: string, credentials: ServerCredentials): Promise<number> {
  return new Promise((resolve, reject) => {
    server.bindAsync(address, credentials, (error, port) => (error === null ? resolve(port) : reject(error)));
  });
}
