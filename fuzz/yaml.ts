/** A gateway's file: it is read, or refused with an error that says where. */
import { loadGatewayConfig } from '../src/gateway/settings/load-gateway-config.js';
import { FlowConfigError } from '../src/index.js';
import { orName } from './inputs.js';

export function fuzz(input: Buffer): void {
  orName(
    () => loadGatewayConfig(input.toString('utf8'), { env: { KEY: 'secret' } }),
    (error) => error instanceof FlowConfigError && error.issues.length > 0,
  );
}
