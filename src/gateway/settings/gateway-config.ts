/** The file with its units resolved, secrets read and defaults filled in; spans are ms. Keys: see `file-schema.ts`. */
import type { ErrorContract } from '../../adapters/http/index.js';
import type { Constraint, FlowControllerOptions, SaturationDetector } from '../../index.js';
import type { MetricProfile, RankDialect } from '../../upstream/index.js';
import type { CorsConfig } from '../shared/cors.js';
import type { SharedStateConfig } from '../shared/store-connection.js';
import type { PictureTokens } from '../sizes/picture-tokens.js';
import type { BudgetsSection } from './plan-budgets.js';

type Numbers<K extends string> = Readonly<Record<K, number>>;
type Flags<K extends string> = Readonly<Record<K, boolean>>;

export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

/** A model server that speaks OpenAI's interface. */
export interface UpstreamConfig {
  readonly id: string;
  readonly url: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly weight: number;
  /** Which metrics it has; `none`: it is not scraped. @default the gateway finds out */
  readonly metrics?: MetricProfile | 'none' | undefined;
  /** Undefined: requests pass as they came. */
  readonly priority?: RankDialect | RankField | undefined;
  readonly healthPath?: string | undefined;
  readonly apiKey?: string | undefined;
}

/** A field of the body that a server orders by. */
export interface RankField {
  readonly field: string;
  /** Highest priority first: the first that is not above the request's counts, or else the last. */
  readonly ranks: readonly { readonly priority: number; readonly rank: number }[];
}

/** The sender of a request, and whether its headers are believed. */
export interface SenderConfig {
  readonly tenant: string;
  readonly priority: number;
  /** @default `priority` */
  readonly maxPriority?: number | undefined;
  readonly trusted: boolean;
}

export interface AuthConfig {
  readonly keys: readonly (SenderConfig & { readonly key: string })[];
  /** The sender of requests without a known key; undefined: they are rejected. */
  readonly anonymous?: SenderConfig | undefined;
}

export interface ScrapeConfig extends Numbers<'interval' | 'idleInterval' | 'timeout' | 'stalenessThreshold'> {
  readonly path: string;
}

/** See `HealthOptions` of `headgate/endpoints`. */
export interface HealthConfig extends Numbers<'interval' | 'timeout' | 'failures' | 'successes'> {
  readonly whenAllSilent: 'keep' | 'ill';
}

export interface TimeoutsConfig extends Numbers<'connect' | 'firstByte' | 'upload' | 'idle' | 'total' | 'socket'> {
  /** A stream without a content token after that long is asked of another server; undefined: it may take its time. */
  readonly firstToken?: number | undefined;
  readonly firstTokenByModel: Readonly<Record<string, number>>;
}

export interface ModelsConfig {
  readonly aliases: Readonly<Record<string, string>>;
  /** The models that `/v1/models` lists. @default those that the servers list */
  readonly list?: readonly string[] | undefined;
  readonly pictures: Readonly<Record<string, PictureTokens>>;
}

export interface InspectorConfig {
  readonly path: string;
  readonly password: string;
  readonly fairnessIds: 'shown' | 'hidden';
}

export interface OpenTelemetryConfig extends Flags<'metrics' | 'traces' | 'fairnessIds'> {
  readonly pool?: string | undefined;
}

export interface GatewayConfig {
  readonly listen: ListenAddress;
  readonly admin: {
    readonly listen?: ListenAddress | undefined;
    readonly token?: string | undefined;
    readonly hosts: readonly string[];
  };
  /** Undefined: there is no inspector. */
  readonly inspector?: InspectorConfig | undefined;
  readonly demand: { readonly path: string; readonly token?: string | undefined };
  /** Undefined: OpenTelemetry is off. Its providers are the process's. */
  readonly openTelemetry?: OpenTelemetryConfig | undefined;
  readonly upstreams: readonly UpstreamConfig[];
  /** Undefined: no server is scraped. */
  readonly scrape?: ScrapeConfig | undefined;
  readonly health: HealthConfig;
  readonly timeouts: TimeoutsConfig;
  readonly limits: Numbers<
    'maxRequestBytes' | 'maxReadingBytes' | 'maxHeaderBytes' | 'minUploadRate' | 'maxConnections' | 'maxSockets'
  >;
  readonly waiting: Numbers<'after' | 'every'> &
    Flags<'enabled' | 'position' | 'informational'> & { readonly json?: 'whitespace' | undefined };
  readonly retry: Flags<'enabled'> & Numbers<'max' | 'maxBodyBytes' | 'avoidFor'>;
  readonly auth: AuthConfig;
  readonly objectives: Readonly<Record<string, number>>;
  readonly serviceTiers: Readonly<Record<string, number>>;
  /** What servers of Dynamo are told, by priority. */
  readonly policyClasses: ReadonlyMap<number, string>;
  readonly models: ModelsConfig;
  /** Undefined: browsers do not let scripts of other origins call the gateway. */
  readonly cors?: CorsConfig | undefined;
  readonly drain: Numbers<'delay' | 'waiting' | 'streams'>;
  readonly log: Flags<'requests' | 'tenants'> & { readonly format: 'json' | 'text' };
  readonly forwarded: 'set' | 'pass';
  readonly contract: Exclude<ErrorContract, (...given: never) => unknown>;
  readonly bandHeadroom: boolean;
  readonly families: boolean;
  /** The state that this gateway shares with its replicas; undefined: every limit is its own. */
  readonly sharedState?: SharedStateConfig | undefined;
  /** Undefined: tenants have no budgets. */
  readonly budgets?: BudgetsSection | undefined;
  /** For the controller, without the pool. */
  readonly flow: FlowControllerOptions;
  /** The file names no detector: one that needs the servers' metrics may be replaced where there are none. */
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
