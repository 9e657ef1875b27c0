/**
 * The configuration of a gateway: the file under its own names, with its units resolved, its secrets read and its
 * defaults filled in. Spans of time are ms.
 */

import type { ErrorContract } from '../../adapters/http/index.js';
import type { Constraint, FlowControllerOptions, SaturationDetector } from '../../index.js';
import type { MetricProfile } from '../../upstream/index.js';
import type { CorsConfig } from '../shared/cors.js';
import type { SharedStateConfig } from '../shared/shared-state.js';
import type { PictureTokens } from '../sizes/picture-tokens.js';

export interface ListenAddress {
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
}

/** A model server that speaks OpenAI's interface. */
export interface UpstreamConfig {
  readonly id: string;
  /** The base URL, without `/v1`. */
  readonly url: string;
  /** `model` may list several, `a, b`. */
  readonly labels: Readonly<Record<string, string>>;
  readonly weight: number;
  /** Which metrics it has; `none`: it is not scraped. @default the gateway finds out */
  readonly metrics?: MetricProfile | 'none' | undefined;
  /** A path that answers 2xx while the server is well; without one, there is no health check. */
  readonly healthPath?: string | undefined;
  /** Sent as `Authorization: Bearer …`. */
  readonly apiKey?: string | undefined;
}

/** The sender of a request, and whether its headers are believed. */
export interface SenderConfig {
  /** The fairness ID. */
  readonly tenant: string;
  readonly priority: number;
  /** Whether its flow headers are believed: true for gateways and proxies of your own. */
  readonly trusted: boolean;
}

export interface AuthConfig {
  readonly keys: readonly (SenderConfig & { readonly key: string })[];
  /** The sender of requests without a known key; undefined: they are rejected. */
  readonly anonymous?: SenderConfig | undefined;
}

export interface ScrapeConfig {
  readonly interval: number;
  /** Applies while no request waits or runs. */
  readonly idleInterval: number;
  readonly timeout: number;
  readonly path: string;
  readonly stalenessThreshold: number;
}

/** See `HealthOptions` of `headgate/endpoints`. */
export interface HealthConfig {
  readonly interval: number;
  readonly timeout: number;
  readonly failures: number;
  readonly successes: number;
  readonly whenAllSilent: 'keep' | 'ill';
}

export interface TimeoutsConfig {
  readonly connect: number;
  /** A stream without a content token after that long is asked of another server; undefined: it may take its time. */
  readonly firstToken?: number | undefined;
  /** The same by the model that the server is asked for. */
  readonly firstTokenByModel: Readonly<Record<string, number>>;
  /** From the request to the head of the answer; an answer that is not streamed is whole by then. */
  readonly firstByte: number;
  /** The longest silence of a client that sends a body. */
  readonly upload: number;
  /** The longest time between two pieces of an answer, to either side. */
  readonly idle: number;
  /** The longest time from dispatch to the end of the answer. */
  readonly total: number;
}

export interface ModelsConfig {
  /** Name that clients use → name that the servers know. */
  readonly aliases: Readonly<Record<string, string>>;
  /** The models that `/v1/models` lists. @default those that the servers list */
  readonly list?: readonly string[] | undefined;
  /** The tokens of a picture, by the name that the servers know; `*` for the others. */
  readonly pictures: Readonly<Record<string, PictureTokens>>;
}

export interface InspectorConfig {
  readonly path: string;
  readonly password: string;
  readonly fairnessIds: 'shown' | 'hidden';
}

export interface OpenTelemetryConfig {
  readonly metrics: boolean;
  readonly traces: boolean;
  readonly pool?: string | undefined;
  /** Whether metrics and spans name tenants. */
  readonly fairnessIds: boolean;
}

export interface GatewayConfig {
  readonly listen: ListenAddress;
  readonly admin: {
    readonly listen?: ListenAddress | undefined;
    readonly token?: string | undefined;
    /** Names by which operators may ask, besides addresses and `localhost`. */
    readonly hosts: readonly string[];
  };
  /** Undefined: there is no inspector. */
  readonly inspector?: InspectorConfig | undefined;
  /** Where autoscalers ask, and the token that they may use besides `admin.token`. */
  readonly demand: { readonly path: string; readonly token?: string | undefined };
  /** Undefined: OpenTelemetry is off. Its providers are the process's. */
  readonly openTelemetry?: OpenTelemetryConfig | undefined;
  readonly upstreams: readonly UpstreamConfig[];
  /** Undefined: no server is scraped. */
  readonly scrape?: ScrapeConfig | undefined;
  readonly health: HealthConfig;
  readonly timeouts: TimeoutsConfig;
  readonly limits: {
    readonly maxRequestBytes: number;
    /** Of all bodies that are being received; a sender gets a quarter. */
    readonly maxReadingBytes: number;
    readonly maxHeaderBytes: number;
    /** A client that sends a body more slowly than that is not waited for. */
    readonly minUploadRate: number;
    /** Open connections of clients; one more is closed at once. */
    readonly maxConnections: number;
  };
  readonly retry: {
    readonly enabled: boolean;
    /** How often a request is sent again at most. */
    readonly max: number;
    /** Longest body that is kept to be sent once more. */
    readonly maxBodyBytes: number;
    /** How long a server that rejected a request, or cannot be reached, gets nothing. */
    readonly avoidFor: number;
  };
  readonly auth: AuthConfig;
  /** Name → priority. */
  readonly objectives: Readonly<Record<string, number>>;
  readonly models: ModelsConfig;
  /** Undefined: browsers do not let scripts of other origins call the gateway. */
  readonly cors?: CorsConfig | undefined;
  readonly drain: {
    /** How long SIGTERM still takes requests, while `/readyz` says 503, so that load balancers can look elsewhere. */
    readonly delay: number;
    readonly waiting: number;
    readonly streams: number;
  };
  readonly log: {
    readonly format: 'json' | 'text';
    /** Whether every request has a line of its own. */
    readonly requests: boolean;
    /** Whether lines name tenants. */
    readonly tenants: boolean;
  };
  /**
   * `X-Forwarded-…` of requests: `set` to what the gateway sees of its client, or `pass`ed on as a proxy in front has
   * set them.
   */
  readonly forwarded: 'set' | 'pass';
  readonly contract: Exclude<ErrorContract, (...given: never) => unknown>;
  /** Whether answers say how many requests more may wait in the band of theirs. */
  readonly bandHeadroom: boolean;
  /** The state that this gateway shares with its replicas; undefined: every limit is its own. */
  readonly sharedState?: SharedStateConfig | undefined;
  /** For the controller, without the pool. */
  readonly flow: FlowControllerOptions;
  /**
   * True when the file names no detector: a detector that needs the servers' metrics may then be replaced if there are
   * none.
   */
  readonly hasDefaultDetector: boolean;
  /** Every detector that the file declares, also those inside others. */
  readonly detectors: readonly SaturationDetector[];
  /** Every constraint that it declares. */
  readonly constraints: readonly Constraint[];
  /** Equal when two files ask for the same flow control. */
  readonly flowFingerprint: string;
  /** Settings that are valid but probably not intended; one sentence each. */
  readonly warnings: readonly string[];
}
