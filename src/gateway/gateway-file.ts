/** A gateway file as it was read. */
import type { MetricProfile } from '../upstream/index.js';

/** The sender of requests; `objective` names a priority. */
export interface FileSender {
  readonly tenant: string;
  readonly objective?: string | undefined;
  readonly priority?: number | undefined;
  readonly trusted?: boolean | undefined;
}

/** The file as it was read: units are resolved, secrets are there, and what was left out is undefined. */
export interface GatewayFile {
  readonly listen: { readonly host?: string | undefined; readonly port: number };
  readonly admin?:
    | {
        readonly host?: string | undefined;
        readonly port?: number | undefined;
        readonly token?: string | undefined;
        readonly hosts?: readonly string[] | undefined;
      }
    | undefined;
  readonly inspector?:
    | {
        readonly path?: string | undefined;
        readonly password?: string | undefined;
        readonly fairnessIds?: 'shown' | 'hidden' | undefined;
      }
    | undefined;
  readonly demand?: { readonly path?: string | undefined; readonly token?: string | undefined } | undefined;
  readonly openTelemetry?:
    | {
        readonly metrics?: boolean | undefined;
        readonly traces?: boolean | undefined;
        readonly pool?: string | undefined;
        readonly fairnessIds?: boolean | undefined;
      }
    | undefined;
  readonly upstreams: readonly {
    readonly id: string;
    readonly url: string;
    readonly labels?: Readonly<Record<string, string>> | undefined;
    readonly weight?: number | undefined;
    readonly metrics?: MetricProfile | 'none' | undefined;
    readonly healthPath?: string | undefined;
    readonly apiKey?: string | undefined;
  }[];
  readonly scrape?:
    | {
        readonly enabled?: boolean | undefined;
        readonly interval?: number | undefined;
        readonly idleInterval?: number | undefined;
        readonly timeout?: number | undefined;
        readonly path?: string | undefined;
        readonly stalenessThreshold?: number | undefined;
      }
    | undefined;
  readonly health?:
    | (Numbers<'interval' | 'timeout' | 'failures' | 'successes'> & {
        readonly whenAllSilent?: 'keep' | 'ill' | undefined;
      })
    | undefined;
  readonly timeouts?:
    | (Numbers<'connect' | 'upload' | 'firstToken' | 'firstByte' | 'idle' | 'total'> & {
        readonly firstTokenByModel?: Readonly<Record<string, number>> | undefined;
      })
    | undefined;
  readonly limits?:
    | Numbers<'maxRequestBytes' | 'maxReadingBytes' | 'maxHeaderBytes' | 'minUploadRate' | 'maxConnections'>
    | undefined;
  readonly forwarded?: 'set' | 'pass' | undefined;
  readonly retry?:
    | (Numbers<'max' | 'maxBodyBytes' | 'avoidFor'> & { readonly enabled?: boolean | undefined })
    | undefined;
  readonly auth?:
    | {
        readonly keys?: readonly (FileSender & { readonly key: string })[] | undefined;
        readonly anonymous?: FileSender | undefined;
      }
    | undefined;
  readonly objectives?: Readonly<Record<string, number>> | undefined;
  readonly models?:
    | { readonly aliases?: Readonly<Record<string, string>> | undefined; readonly list?: readonly string[] | undefined }
    | undefined;
  readonly cors?: { readonly origins: '*' | readonly string[]; readonly maxAge?: number | undefined } | undefined;
  readonly drain?: Numbers<'delay' | 'waiting' | 'streams'> | undefined;
  readonly log?:
    | {
        readonly format?: 'json' | 'text' | undefined;
        readonly requests?: boolean | undefined;
        readonly tenants?: boolean | undefined;
      }
    | undefined;
  readonly contract?: 'gateway-api' | 'llm-d' | 'dynamo' | undefined;
  readonly bandHeadroom?: boolean | undefined;
  readonly sharedState?: FileSharedState | undefined;
  readonly plugins?: unknown;
  readonly saturationDetector?: unknown;
  readonly flowControl?: unknown;
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
  readonly url: string;
  readonly pool?: string | undefined;
  readonly prefix?: string | undefined;
  readonly fallback?: 'safe' | 'closed' | number | undefined;
  readonly quotas?: boolean | undefined;
}

type Numbers<K extends string> = { readonly [Name in K]?: number | undefined };
