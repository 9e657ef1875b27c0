/** `headgate/gateway`: what `headgate gateway` and `headgate epp` run, as a library. Needs `undici` and `yaml`. */
export { createEpp, type Epp, type EppOptions } from './epp/epp.js';
export { type EppConfig, type EppSettings, type LoadEppConfigOptions, loadEppConfig } from './epp/epp-config.js';
export { createGateway, type Gateway, type GatewayOptions } from './gateway.js';
export type { GatewayRequest } from './gateway-flow.js';
export type * from './settings/gateway-config.js';
export { type LoadGatewayConfigOptions, loadGatewayConfig } from './settings/load-gateway-config.js';
export { type ImportPluginsOptions, importPlugins } from './settings/plugin-modules.js';
export { type GatewayLog, type LogFields, type LogLevel, lineLog } from './shared/gateway-log.js';
