/** Which flow a request belongs to, by its headers, if they may be believed. */
import * as names from '../../base/headers/header-names.js';
import { type HeaderSource, headerText, headerValue } from '../../base/headers/header-source.js';
import { parseDuration } from '../../base/schema/duration.js';

/** Priorities by the name of the InferenceObjective. An objective without a priority counts as 0. */
export type Objectives = ReadonlyMap<string, number | undefined> | Readonly<Record<string, number | undefined>>;

export interface FlowKeyOptions {
  /** The priorities that names of objectives stand for. @default none: every request has priority 0 */
  objectives?: Objectives | undefined;
  /**
   * Whether the headers may be believed. Say true only where a proxy of your own sets them and removes what clients
   * send: otherwise a client names any tenant and any objective. @default false: all headers are ignored
   */
  trust?: boolean | undefined;
  /** The fairness ID of requests that name none. @default 'default-flow' */
  defaultFairnessId?: string | undefined;
  /**
   * Whether requests without a fairness ID go by their agents' `agentSessionHeaders`; a list comes before those. Every
   * session is a flow then: a user with many has many shares. Believed only with `trust`. @default false
   */
  sessionHeaders?: boolean | readonly string[] | undefined;
}

/** A flow key with its priority filled in, and what else the headers said. */
export interface HeaderFlowKey {
  readonly fairnessId: string;
  readonly priority: number;
  readonly sloTtftMs: number | undefined;
  /** The most that the request may wait, ms; it can only shorten the time to live. */
  readonly maxWaitMs: number | undefined;
  /** The endpoints that a load balancer in front allows, as it wrote them; empty text allows none, undefined all. */
  readonly endpointSubset: string | undefined;
  readonly sessionId?: string | undefined;
  readonly parentSessionId?: string | undefined;
}

/** Reads the flow headers. Without a fairness ID: `sessionHeaders`, or the default flow; without an objective: 0. */
export function flowKeyFromHeaders(headers: HeaderSource, options: FlowKeyOptions = {}): HeaderFlowKey {
  const { objectives, trust = false, defaultFairnessId = 'default-flow', sessionHeaders = false } = options;
  if (!trust) return { fairnessId: defaultFairnessId, priority: 0, ...untold };
  return {
    fairnessId:
      headerValue(headers, names.fairnessIdHeader) ??
      (sessionHeaders === false ? undefined : agentIdentity(headers, sessionHeaders === true ? [] : sessionHeaders)) ??
      defaultFairnessId,
    priority: priorityOf(headerValue(headers, names.priorityHeaders), objectives),
    sloTtftMs: sloTtftMsFromHeaders(headers),
    maxWaitMs: maxWaitMsFromHeaders(headers),
    endpointSubset: headerText(headers, names.endpointSubsetHeader),
    sessionId: headerValue(headers, [names.sessionHeader]),
    parentSessionId: headerValue(headers, [names.parentSessionHeader]),
  };
}

const untold = { sloTtftMs: undefined, maxWaitMs: undefined, endpointSubset: undefined };

/** The time-to-first-token target, ms; 0 is one. Undefined without a decimal number from 0 to about 292 years. */
export function sloTtftMsFromHeaders(headers: HeaderSource): number | undefined {
  const value = headerValue(headers, names.sloTtftHeader);
  if (value === undefined || !/^[+-]?\d+$/.test(value)) return undefined;
  const sloTtftMs = Number(value);
  return sloTtftMs >= 0 && sloTtftMs <= maxSloMs ? Math.abs(sloTtftMs) : undefined;
}

/** The most that the request may wait, ms. Undefined without a duration above 0 in the header, such as `250ms`. */
function maxWaitMsFromHeaders(headers: HeaderSource): number | undefined {
  const value = headerValue(headers, [names.waitHeader]);
  const maxWaitMs = value === undefined ? NaN : parseDuration(value);
  return maxWaitMs > 0 ? maxWaitMs : undefined;
}

const maxSloMs = 9_223_372_036_854;

function priorityOf(objective: string | undefined, objectives: Objectives | undefined): number {
  if (objective === undefined || objectives === undefined) return 0;
  if (isMap(objectives)) return objectives.get(objective) ?? 0;
  return Object.hasOwn(objectives, objective) ? (objectives[objective] ?? 0) : 0;
}

function isMap(objectives: Objectives): objectives is ReadonlyMap<string, number | undefined> {
  return typeof objectives.get === 'function';
}

/** The session headers of known agents, in the order in which they count. Source: llm-d-router, agent-identity. */
export const agentSessionHeaders = [
  'x-claude-code-session-id',
  'x-session-affinity',
  'session-id',
  'session_id',
] as const;

/** The first session header with a value: `additionalSessionHeaders` in their order, then the known ones. */
export function agentIdentity(
  headers: HeaderSource,
  additionalSessionHeaders: readonly string[] = [],
): string | undefined {
  const added = additionalSessionHeaders.map((name) => headerValue(headers, [name.toLowerCase()]));
  return added.find((identity) => identity !== undefined) ?? headerValue(headers, agentSessionHeaders);
}
