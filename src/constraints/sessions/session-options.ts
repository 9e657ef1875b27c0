/** The options of `sessionLimit()`, in code and in files, and which session a request belongs to. */
import { requestField, textIn } from '../../base/request-field.js';
import type { Duration } from '../../base/schema/duration.js';
import * as s from '../../base/schema/schema.js';
import type { ItemView } from '../../tiers/views.js';
import type { SharedPrefix } from './session-table.js';

/** Parameters that a configuration file can hold. */
export interface SessionLimitParameters {
  /** The session: `request.sessionId` within a fairness ID, or that ID. Without one it passes. @default 'sessionId' */
  by?: 'sessionId' | 'fairnessId' | undefined;
  /** Sessions that may be resident at a time in the whole pool, from 1 up. @default unlimited */
  maxSessions?: number | undefined;
  /** Tokens that sessions, idle too, may hold at an endpoint of weight 1, ≥ 1: its KV cache. @default unlimited */
  footprint?: number | undefined;
  /** How long a session without a running turn stays resident, above 0. @default '30m' */
  inactivity?: Duration | undefined;
}

export interface SessionLimitOptions<R = unknown> extends Omit<SessionLimitParameters, 'by'> {
  /** Or a function that tells the session, always the same for a request; undefined or empty text: none. */
  by?: SessionLimitParameters['by'] | ((item: ItemView<R>) => string | undefined);
  /** The beginning that a session shares with others: `footprint` counts it once at each endpoint. @default none */
  sharedPrefix?: ((item: ItemView<R>) => SharedPrefix | undefined) | undefined;
}

const limits = {
  maxSessions: s.optional(s.positiveInteger()),
  footprint: s.optional(s.positiveInteger()),
  inactivity: s.optional(s.positiveDuration('30m'), 1_800_000),
};

interface ParsedLimits extends Readonly<Pick<SessionLimitParameters, 'maxSessions' | 'footprint'>> {
  /** How long a session without a running turn stays resident, ms. */
  readonly inactivity: number;
}

export interface SessionSettings extends ParsedLimits {
  readonly by: (item: ItemView) => unknown;
  readonly sharedPrefix?: ((item: ItemView) => SharedPrefix | undefined) | undefined;
}

export const sessionParameters: s.Schema<ParsedLimits & { readonly by: 'sessionId' | 'fairnessId' }> =
  /* @__PURE__ */ s.object(
    s.withKeys({ by: s.optional(s.oneOf('sessionId', 'fairnessId'), 'sessionId') }, limits),
    hasLimit,
  );

export const sessionOptions: s.Schema<SessionSettings> = /* @__PURE__ */ s.object(
  s.withKeys(
    { by: s.element(readBy), sharedPrefix: s.optional(s.callable<(item: ItemView) => SharedPrefix | undefined>()) },
    limits,
  ),
  hasLimit,
);

function hasLimit({ maxSessions, footprint }: Partial<ParsedLimits>, report: s.Report): void {
  if (maxSessions === undefined && footprint === undefined) report('maxSessions, footprint, or both', [], 'neither');
}

function readBy(given: unknown, report: s.Report): SessionSettings['by'] | undefined {
  if (given === 'fairnessId') return ({ fairnessId }) => fairnessId;
  if (typeof given === 'function') return (item) => given(item);
  if (given === 'sessionId') return namedSession;
  return report('"sessionId", "fairnessId", or a function of the request in the queue');
}

/** Clients choose these names, and a tenant must not get into the session of another. */
function namedSession({ request, fairnessId }: ItemView): string | undefined {
  const sessionId = textIn(requestField(request, 'sessionId'));
  return sessionId && JSON.stringify([fairnessId, sessionId]);
}
