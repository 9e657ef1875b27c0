/** `headgate gateway` as a process, before model servers as processes, under a load that shows every metric at work. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { bundleCli, type CliProcess } from '../gateway/support/bundled-cli.js';
import type { ModelServer } from '../gateway/support/model-server.js';
import { eventually } from './prometheus-server.js';

const roles: readonly string[] = ['decode', 'prefill', 'decode'];

/** Twelve seats on three servers, short queues, and a fourth server that tells nothing about itself. */
function fileOf(servers: readonly ModelServer[], maxRequests: number): object {
  const upstreams = servers.map(({ name, url }, index) => ({
    id: name,
    url,
    labels: { 'llm-d.ai/role': roles[index] ?? 'decode' },
  }));
  const silent = { id: 'silent', url: 'http://127.0.0.1:9', metrics: 'none', labels: { 'llm-d.ai/role': 'decode' } };
  const fairness = (priority: number): string =>
    priority === 0 ? 'program-aware-fairness' : 'round-robin-fairness-policy';
  return {
    listen: { port: 0 },
    admin: { port: 0 },
    upstreams: servers.length === 0 ? [] : [...upstreams, silent],
    scrape: { interval: '100ms' },
    // One request of a client is one of the controller.
    retry: { enabled: false },
    objectives: { premium: 100, standard: 0, batch: -10 },
    auth: { keys: [{ key: 'sk-load', tenant: 'load', trusted: true }] },
    log: { format: 'json', requests: false },
    drain: { waiting: '1s', streams: '1s' },
    plugins: [
      { type: 'round-robin-fairness-policy' },
      { type: 'program-aware-fairness' },
      {
        type: 'utilization-detector',
        parameters: { queueDepthThreshold: 5, metricsStalenessThreshold: '2s', stalenessPolicy: 'ignore' },
      },
      { type: 'concurrency-detector', parameters: { maxConcurrency: 4 } },
      {
        type: 'quota-detector',
        parameters: {
          groups: [{ name: 'pool', quotas: [{ unit: 'requests', limit: 1e6, window: 'fixed' }], learn: false }],
        },
      },
      { type: 'session-limit-detector', parameters: { by: 'fairnessId', maxSessions: 1000, inactivity: '1s' } },
      {
        type: 'max-saturation-detector',
        parameters: {
          detectors: ['utilization-detector', 'concurrency-detector', 'quota-detector', 'session-limit-detector'],
        },
      },
      { type: 'stage-aware-saturation-detector', parameters: { detector: 'max-saturation-detector' } },
    ],
    flowControl: {
      saturationDetector: { pluginRef: 'stage-aware-saturation-detector' },
      maxRequests,
      maxBytes: '4Mi',
      defaultRequestTTL: '1s',
      noEndpointRequestTTL: '1s',
      enableEviction: true,
      priorityBands: [100, 0, -10].map((priority) => ({
        priority,
        maxRequests: 25,
        maxBytes: '1Mi',
        maxInFlightPerFlow: 1000,
        fairnessPolicyRef: fairness(priority),
      })),
    },
  };
}

export interface LoadedGateway {
  readonly url: string;
  /** Where metrics are: the gateway has keys. */
  readonly adminUrl: string;
  readonly process: CliProcess;
  /** Puts another list of servers, or another limit, into force. */
  reload(servers: readonly ModelServer[], maxRequests?: number): Promise<void>;
}

/** Ends with the test. */
export async function startGatewayProcess(servers: readonly ModelServer[]): Promise<LoadedGateway> {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-gateway-'));
  const file = join(folder, 'gateway.yaml');
  const write = (with_: readonly ModelServer[], maxRequests: number): void =>
    writeFileSync(file, JSON.stringify(fileOf(with_, maxRequests)));
  write(servers, 60);
  const cli = await bundleCli();
  onTestFinished(() => {
    cli.remove();
    rmSync(folder, { recursive: true, force: true });
  });
  const gateway = cli.start(['gateway', '--config', file]);
  await eventually(() => `the gateway listens: ${gateway.stderr}`, async () => gateway.events('listening').length > 0); // biome-ignore format: one question
  return {
    url: String(gateway.events('listening')[0]?.url),
    adminUrl: String(gateway.events('listening')[0]?.adminUrl),
    process: gateway,
    async reload(next, maxRequests = 60) {
      const before = gateway.events('reloaded').length;
      write(next, maxRequests);
      gateway.child.kill('SIGHUP');
      await eventually(() => `the gateway reloads: ${gateway.stderr}`, async () => gateway.events('reloaded').length > before); // biome-ignore format: one question
    },
  };
}

/** What became of a request, as its client saw it. */
export interface Received {
  /** 0: no answer. */
  readonly status: number;
  /** Why the gateway dropped it. */
  readonly reason: string | null;
  readonly isWhole: boolean;
}

/** Sends what it is told to, and keeps the books. */
export class LoadGenerator {
  sent = 0;
  private readonly url: string;
  private readonly pending: Promise<Received>[] = [];

  constructor(url: string) {
    this.url = `${url}/v1/completions`;
  }

  send(tenant: string, objective: string, tokens: number, signal: AbortSignal | null = null): void {
    this.sent++;
    const body = {
      model: 'default-model',
      prompt: 'x '.repeat(200),
      max_tokens: tokens,
      ignore_eos: true,
      stream: true,
    };
    const headers = {
      'content-type': 'application/json',
      authorization: 'Bearer sk-load',
      'x-gateway-inference-fairness-id': tenant,
      'x-gateway-inference-objective': objective,
    };
    this.pending.push(this.exchange({ method: 'POST', headers, body: JSON.stringify(body), signal }));
  }

  /** Resolves when every request sent has ended. */
  async settle(): Promise<Received[]> {
    return Promise.all(this.pending);
  }

  private async exchange(init: RequestInit): Promise<Received> {
    let status = 0;
    let reason: string | null = null;
    try {
      const response = await fetch(this.url, init);
      status = response.status;
      reason = response.headers.get('x-llm-d-request-dropped-reason');
      const text = await response.text();
      return { status, reason, isWhole: text.includes('data: [DONE]') };
    } catch {
      return { status, reason, isWhole: false };
    }
  }
}

/**
 * Requests at a steady rate, whatever becomes of them: twice what the servers can bear, in all bands, from several
 * tenants.
 */
export async function overload(generator: LoadGenerator, seconds: number): Promise<void> {
  const senders = ['premium', 'standard', 'standard', 'batch', 'standard', 'batch'];
  for (let tick = 0; tick < seconds * 20; tick++) {
    for (let index = 0; index < 4; index++) {
      const number = tick * 4 + index;
      const objective = senders[number % senders.length] as string;
      generator.send(`tenant-${number % 5}`, objective, objective === 'batch' ? 60 : 25);
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
