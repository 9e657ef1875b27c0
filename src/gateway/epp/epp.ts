/**
 * An endpoint picker: what proxies ask by Envoy's external processing for every request, with flow control.
 *
 *     proxy ─ext_proc─► parse ─► the gate ─► which server ─► proxy ─► server
 *                       400      429 503        503
 */
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ExtProcHandler, ExtProcRequest, ExtProcServer } from '../../adapters/ext-proc/index.js';
import type { HttpFlowRequest } from '../../adapters/http/index.js';
import type { EndpointPicker, FlowControllerOptions, FlowStats } from '../../index.js';
import { EndpointPool, FlowController, subsetHint } from '../../index.js';
import { prometheusMetrics } from '../../observability/prometheus/index.js';
import { type Scraper, scrape } from '../../upstream/index.js';
import type { GatewayOptions } from '../gateway.js';
import type { PromClient } from '../metrics/gateway-metrics.js';
import { contained, type GatewayLog } from '../shared/gateway-log.js';
import { loadCel, loadExtProc, loadPromClient } from '../shared/optional-peers.js';
import type { EppConfig } from './epp-config.js';
import { eppMetrics, eppPrefix } from './epp-metrics.js';
import { EppRequests, noteOf } from './epp-requests.js';
import { followEndpoints } from './follow-endpoints.js';

export type EppOptions = Pick<GatewayOptions, 'log'>;

type EppRequest = HttpFlowRequest<ExtProcRequest>;
type ExtProcModule = Awaited<ReturnType<typeof loadExtProc>>;
type Cel = Awaited<ReturnType<typeof loadCel>>;

/** An endpoint picker that runs. */
export interface Epp {
  /** Where proxies ask, where the health service is, and where `/metrics` is. */
  readonly ports: { readonly port: number; readonly healthPort: number | undefined; readonly metricsPort: number };
  readonly flow: FlowController<EppRequest>;
  readonly pool: EndpointPool;
  /** Puts another configuration into force; nothing is dropped, and ports stay. @throws FlowConfigError */
  reconfigure(config: EppConfig): void;
  /** Lets waiting requests go on for a while, then answers 503, and lets answers end. Idempotent. */
  close(): Promise<FlowStats>;
}

/**
 * Starts an endpoint picker; resolves when it listens. Needs the packages `@grpc/grpc-js` and `protobufjs`.
 * @throws (rejects) FlowConfigError; what reading files and listening throw
 * @example
 * const epp = await createEpp(loadEppConfig(await readFile('epp.yaml', 'utf8')));
 * process.once('SIGTERM', () => epp.close());
 */
export async function createEpp(config: EppConfig, { log = () => {} }: EppOptions = {}): Promise<Epp> {
  const [extProc, promClient, parser] = [await loadExtProc(), await loadPromClient(), await loadCel()];
  const running = new RunningEpp(config, contained(log), extProc, promClient, parser);
  try {
    await running.listen();
  } catch (error) {
    await running.close();
    throw error;
  }
  return running;
}

class RunningEpp implements Epp {
  ports: Epp['ports'] = { port: 0, healthPort: undefined, metricsPort: 0 };
  readonly pool: EndpointPool = new EndpointPool();
  readonly flow: FlowController<EppRequest>;
  private readonly requests: EppRequests;
  private readonly scraper: Scraper;
  private readonly metricsServer: Server;
  private readonly log: GatewayLog;
  private readonly extProc: ExtProcModule;
  /** By the options in force; a stream keeps that of its beginning. */
  private handler: ExtProcHandler;
  private config: EppConfig;
  private endpoints: () => void;
  private server: ExtProcServer | undefined = undefined;
  private closed: Promise<FlowStats> | undefined = undefined;

  constructor(config: EppConfig, log: GatewayLog, extProc: ExtProcModule, promClient?: PromClient, parser?: Cel) {
    this.config = config;
    this.log = log;
    this.extProc = extProc;
    this.requests = new EppRequests(this.pool, log, config, parser);
    this.endpoints = followEndpoints(config.endpoints, this.pool, log);
    this.flow = new FlowController<EppRequest>({ ...this.flowOptions(), pool: this.pool });
    this.handler = extProc.flowControl(this.flow, this.requests.options());
    this.flow.on('pluginError', ({ kind, type, error }) =>
      log('error', 'plugin-error', { kind, type, error: String(error) }),
    );
    this.scraper = scrape(this.pool);
    this.scraper.on('failed', ({ endpoint, error }) =>
      log('warn', 'scrape-failed', { endpoint: endpoint.id, error: error.message }),
    );
    this.scraper.on('recovered', ({ endpoint }) => log('info', 'scrape-recovered', { endpoint: endpoint.id }));
    const register = promClient && new promClient.Registry();
    if (promClient !== undefined && register !== undefined) {
      prometheusMetrics(this.flow, {
        register,
        prefix: eppPrefix,
        inferencePool: config.settings.poolName,
        detectors: () =>
          [this.config.options.saturationDetector].filter((each) => typeof each === 'object' && 'saturation' in each),
        modelName: ({ req }) => this.requests.knownModels.labelOf(noteOf(req)?.asked),
        targetModelName: ({ req }) => this.requests.knownModels.labelOf(noteOf(req)?.model),
      });
      this.requests.counts = eppMetrics(promClient, register, this.pool);
    }
    this.metricsServer = createServer((req, res) => {
      if (req.url === '/metrics' && register !== undefined) {
        const sent = (text: string): unknown => res.setHeader('content-type', register.contentType).end(text);
        register.metrics().then(sent, () => res.writeHead(500).end());
      } else {
        const isReady = req.url === '/readyz' && this.closed === undefined;
        res.writeHead(isReady ? 200 : req.url === '/readyz' ? 503 : 404).end();
      }
    });
  }

  async listen(): Promise<void> {
    const { host, port, healthPort, metricsPort, tls } = this.config.settings;
    const pem = tls && { cert: readFileSync(tls.cert), key: readFileSync(tls.key) };
    this.server = await this.extProc.serveExtProc((sink) => this.handler(sink), { host, port, healthPort, tls: pem });
    await new Promise<void>((resolve, reject) => {
      this.metricsServer.once('error', reject).listen(metricsPort, host, resolve);
    });
    const { port: bound } = this.metricsServer.address() as AddressInfo;
    this.ports = { port: this.server.port, healthPort: this.server.healthPort, metricsPort: bound };
  }

  reconfigure(config: EppConfig): void {
    const before = this.config;
    this.config = config;
    try {
      this.requests.configure(config);
      this.flow.reconfigure(this.flowOptions());
      const endpoints = followEndpoints(config.endpoints, this.pool, this.log);
      this.endpoints();
      this.endpoints = endpoints;
    } catch (error) {
      this.config = before;
      this.requests.configure(before);
      this.flow.reconfigure(this.flowOptions());
      throw error;
    }
    this.handler = this.extProc.flowControl(this.flow, this.requests.options());
  }

  close(): Promise<FlowStats> {
    this.closed ??= this.shutDown();
    return this.closed;
  }

  private async shutDown(): Promise<FlowStats> {
    const { drain, drainStreams } = this.config.settings;
    this.server?.setServing(false);
    await this.flow.close({ drainMs: drain });
    await this.server?.close(drainStreams);
    this.scraper.stop();
    this.endpoints();
    this.metricsServer.close();
    this.metricsServer.closeAllConnections();
    return this.flow.stats();
  }

  /** The file's options, with the profile as picker and the proxy's subset as a filter. */
  private flowOptions(): FlowControllerOptions<EppRequest> {
    const given = this.config.options as FlowControllerOptions<EppRequest>;
    const { endpointFilters = [], holBlocking = 'none' } = given;
    const byProfile: EndpointPicker<EppRequest> = {
      type: 'scheduling-profile',
      pick: (endpoints, { request }) => this.requests.rank(endpoints, request.req)[0],
    };
    const filters = [...endpointFilters, subsetHint<EppRequest>({ heedsPorts: true })];
    // Requests whose servers are full must not hold back the others.
    return { ...given, endpointPicker: given.endpointPicker ?? byProfile, endpointFilters: filters, holBlocking };
  }
}
