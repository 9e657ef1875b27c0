/** A gateway in this process, on a port of its own. */
import { onTestFinished } from 'vitest';
import {
  createGateway,
  type Gateway,
  type GatewayConfig,
  type LogFields,
  type LogLevel,
  loadGatewayConfig,
} from '../../../src/gateway/index.js';
import type { GatewayWorkers } from '../../../src/gateway/shared/gateway-workers.js';
import { defaultRegistry } from '../../../src/index.js';

/** One seat for each server, and nothing scraped, unless `more` says otherwise. */
export function fileOf(upstreams: readonly (string | object)[], more: object = {}, maxConcurrency = 1): object {
  return {
    listen: { port: 0 },
    upstreams: upstreams.map((upstream, index) =>
      typeof upstream === 'string' ? { id: `u${index}`, url: upstream } : upstream,
    ),
    plugins: [{ type: 'concurrency-detector', parameters: { maxConcurrency } }],
    flowControl: { saturationDetector: { pluginRef: 'concurrency-detector' } },
    drain: { waiting: '1s', streams: '1s' },
    ...more,
  };
}

export interface Started {
  readonly gateway: Gateway;
  readonly config: GatewayConfig;
  readonly log: { readonly level: LogLevel; readonly event: string; readonly fields: LogFields }[];
  post(body: unknown, init?: RequestInit): Promise<Response>;
}

export async function startGateway(file: object, workers?: GatewayWorkers): Promise<Started> {
  const log: Started['log'] = [];
  const config = loadFor(file, workers);
  const write = (level: LogLevel, event: string, fields = {}): unknown => log.push({ level, event, fields });
  const options = { workers, log: write };
  const gateway = await createGateway(config, options);
  onTestFinished(async () => {
    await gateway.close();
  });
  return {
    gateway,
    config,
    log,
    post: (body, init = {}) =>
      fetch(`${gateway.url}/v1/chat/completions`, {
        method: 'POST',
        body: typeof body === 'string' ? body : JSON.stringify(body),
        ...init,
        headers: { 'content-type': 'application/json', ...init.headers },
      }),
  };
}

/** As one of several workers reads it. */
export function loadFor(file: object, workers: GatewayWorkers | undefined): GatewayConfig {
  const config = loadGatewayConfig(file, { registry: workers?.registry(defaultRegistry()) });
  return workers?.settings(config) ?? config;
}

/** What an error of the gateway or of flow control says. */
export async function errorOf(
  response: Response,
): Promise<{ status: number; code: string; type: string; message: string }> {
  const { error } = (await response.json()) as { error: { code: string; type: string; message: string } };
  return { status: response.status, code: error.code, type: error.type, message: error.message };
}
