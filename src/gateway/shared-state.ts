/**
 * The limit that this gateway shares with its replicas: the connection, the detector, and what the log says of both.
 *
 * Invariant: a gateway starts and serves without the engine; the fallback of the leases is in force then.
 */
import { maxOf, type SaturationDetector } from '../index.js';
import {
  type LeasedDetector,
  type LeaseOptions,
  type SharedConcurrency,
  sharedConcurrency,
  sharedEndpointConcurrency,
} from '../redis/index.js';
import type { GatewayLog } from './gateway-log.js';
import { connectEngine, type EngineConnection } from './optional-peers.js';

export interface SharedStateConfig {
  /** Of the engine: `redis://…` or `rediss://…`. May hold a password. */
  readonly url: string;
  /** What is limited: requests or tokens in flight of the whole pool, or requests in flight of each endpoint of weight 1. */
  readonly limits: 'maxConcurrency' | 'maxTokens' | 'endpointConcurrency';
  readonly limit: number;
  readonly leases: LeaseOptions & { readonly leaseDuration: number };
}

/** What replicas share. */
export class SharedState {
  readonly detector: LeasedDetector;
  private config: SharedStateConfig;
  private readonly engine: EngineConnection;

  private constructor(config: SharedStateConfig, engine: EngineConnection, log: GatewayLog) {
    this.config = config;
    this.engine = engine;
    this.detector = detectorOf(config, engine);
    logLeases(this.detector, log);
  }

  /** @throws (rejects) FlowConfigError when no client is installed */
  static async connect(config: SharedStateConfig, log: GatewayLog): Promise<SharedState> {
    return new SharedState(config, await connectEngine(config.url, config.leases.leaseDuration), log);
  }

  /** The file's detector and the shared limit: the fuller of the two decides. */
  beside<D extends SaturationDetector | ((...args: never) => unknown)>(detector: D): SaturationDetector {
    const own = (typeof detector === 'function' ? { type: 'function', saturation: detector } : detector) as SaturationDetector;
    return maxOf({ detector: this.detector, name: 'shared' }, own);
  }

  /** Puts another limit into force. False when more than that has changed, which needs a restart. */
  reconfigure(next: SharedStateConfig | undefined): boolean {
    const { limit: _limit, ...before } = this.config;
    const { limit, ...after } = next ?? { limit: 0 };
    if (JSON.stringify(before) !== JSON.stringify(after) || next === undefined) return false;
    if (limit !== this.config.limit && !canBeSet(this.detector)) return false;
    if (canBeSet(this.detector)) this.detector.setLimit(limit);
    this.config = next;
    return true;
  }

  /** Gives the share back and closes the connection. Never rejects. */
  async close(): Promise<void> {
    await this.detector.close();
    this.engine.end();
  }
}

function canBeSet(detector: LeasedDetector): detector is SharedConcurrency {
  return 'setLimit' in detector;
}

function detectorOf({ limits, limit, leases }: SharedStateConfig, { client }: EngineConnection): LeasedDetector {
  if (limits === 'endpointConcurrency') return sharedEndpointConcurrency(client, { ...leases, maxConcurrency: limit });
  return sharedConcurrency(client, { ...leases, [limits]: limit });
}

function logLeases(detector: LeasedDetector, log: GatewayLog): void {
  detector.on('problem', ({ code, message }) => log('warn', 'shared-state', { code, message }));
  detector.on('expired', ({ key, limit }) => log('warn', 'lease-expired', { key, limit }));
  detector.on('recovered', ({ key, grant, expiredForMs }) =>
    log('info', 'lease-recovered', { key, grant, expiredForMs: Math.round(expiredForMs) }),
  );
  detector.on('epoch', ({ key, epoch }) => log('warn', 'shared-state-lost', { key, epoch }));
  detector.on('breaker', ({ isOpen }) => log(isOpen ? 'warn' : 'info', 'shared-state-breaker', { isOpen }));
}
