/** `headgate/gateway`: the reverse proxy of `headgate gateway`, as a library. Needs `undici` and `yaml`. */

export { createGateway, type Gateway, type GatewayOptions } from './gateway.js';
export type { GatewayRequest } from './gateway-flow.js';
export type { OperatorQuestion, Together } from './operators/operator-routes.js';
export type {
  AuthConfig,
  GatewayConfig,
  InspectorConfig,
  ListenAddress,
  ModelsConfig,
  OpenTelemetryConfig,
  ScrapeConfig,
  SenderConfig,
  TimeoutsConfig,
  UpstreamConfig,
} from './settings/gateway-config.js';
export { type LoadGatewayConfigOptions, loadGatewayConfig } from './settings/load-gateway-config.js';
export { type ImportPluginsOptions, importPlugins } from './settings/plugin-modules.js';
export { type GatewayLog, type LogFields, type LogLevel, lineLog } from './shared/gateway-log.js';
export { GatewayWorkers } from './shared/worker-shares.js';
