/** A gateway file as it was read: units are resolved, secrets are there, and defaults that need no other section. */
import type { RankDialect } from '../../upstream/index.js';
import type { GatewayConfig, InspectorConfig, ScrapeConfig, UpstreamConfig } from './gateway-config.js';

/** The sender of requests; `objective` names a priority. */
export interface FileSender {
  readonly tenant: string;
  readonly objective?: string | undefined;
  readonly priority?: number | undefined;
  readonly maxPriority?: number | undefined;
  readonly trusted: boolean;
}

/** What is read elsewhere, by `headgate/config`. */
type FlowSettings = 'flow' | 'hasDefaultDetector' | 'detectors' | 'constraints' | 'flowFingerprint' | 'warnings';
/** Sections that may be missing, or whose settings depend on others. */
type Open =
  | 'serviceTiers'
  | 'upstreams'
  | 'admin'
  | 'inspector'
  | 'openTelemetry'
  | 'scrape'
  | 'auth'
  | 'cors'
  | 'sharedState';

export interface GatewayFile
  extends Omit<GatewayConfig, FlowSettings | Open>,
    Partial<Pick<GatewayConfig, 'openTelemetry' | 'cors'>> {
  readonly admin: {
    readonly host?: string | undefined;
    readonly port?: number | undefined;
    readonly token?: string | undefined;
    readonly hosts: readonly string[];
  };
  readonly upstreams: readonly (Omit<UpstreamConfig, 'priority'> & {
    readonly priority?: RankDialect | 'auto' | undefined;
  })[];
  /** `service_tier` → name of an objective. */
  readonly serviceTiers: Readonly<Record<string, string>>;
  readonly inspector?: (Omit<InspectorConfig, 'password'> & { readonly password?: string | undefined }) | undefined;
  readonly scrape: ScrapeConfig & { readonly enabled?: boolean | undefined };
  readonly auth: {
    readonly keys: readonly (FileSender & { readonly key: string })[];
    readonly anonymous?: FileSender | undefined;
  };
  readonly sharedState?: FileSharedState | undefined;
}

/** Spans of time in ms. */
export interface FileSharedState
  extends Numbers<
    | 'maxConcurrency'
    | 'maxTokens'
    | 'endpointConcurrency'
    | 'replicas'
    | 'maxShare'
    | 'refreshInterval'
    | 'leaseDuration'
    | 'drainDuration'
    | 'forgetAfter'
    | 'callTimeout'
  > {
  readonly url?: string | undefined;
  readonly cluster?: readonly string[] | undefined;
  readonly sentinel?: { readonly name: string; readonly nodes: readonly string[] } | undefined;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  readonly tls?: FileStoreTls | undefined;
  readonly pool?: string | undefined;
  readonly replica?: string | undefined;
  readonly prefix?: string | undefined;
  readonly fallback?: 'safe' | 'closed' | number | undefined;
  readonly quotas?: boolean | undefined;
}

/** In PEM. */
export interface FileStoreTls {
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  readonly serverName?: string | undefined;
}

type Numbers<K extends string> = { readonly [Name in K]?: number | undefined };
