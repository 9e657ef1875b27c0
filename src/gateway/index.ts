/**
 * `headgate/gateway`: a reverse proxy with flow control, as a library. `headgate gateway` is made of it. Needs `undici`
 * and `yaml`.
 */
export { createGateway, type Gateway, type GatewayOptions } from './gateway.js';
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
} from './gateway-config.js';
export type { GatewayRequest } from './gateway-flow.js';
export { type GatewayLog, type LogFields, type LogLevel, lineLog } from './gateway-log.js';
export { type LoadGatewayConfigOptions, loadGatewayConfig } from './load-gateway-config.js';
export { type ImportPluginsOptions, importPlugins } from './plugin-modules.js';
