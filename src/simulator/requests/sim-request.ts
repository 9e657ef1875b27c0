/** One request of a simulated client, to its end, and its record. All have one shape, so that a million are cheap. */
import type { FlowKey, FlowRequest, Lease } from '../../index.js';

/** A request as a source of traffic asks for it. */
export interface RequestDraft {
  readonly promptTokens: number;
  readonly outputTokens: number;
  /** Its service time on a server of slots, ms; undefined: as the server draws it. */
  readonly serviceMs: number | undefined;
  /** Slots that it holds while it runs, for servers of slots. */
  readonly seats: number;
  readonly ttlMs: number | undefined;
  readonly sloTtftMs: number | undefined;
  readonly byteSize: number;
}

/** How a request ended for its client; `failed`: its server died while the answer came. */
export type Ending = 'completed' | 'dropped' | 'evicted' | 'cancelled' | 'failed';

/** Is told when a request has ended for good, retries included. */
export type OnEnd = (request: SimRequest, ending: Ending) => void;

/** Instants are NaN until they come. */
export class SimRequest implements FlowRequest {
  readonly byteSize: number;
  readonly tokens: number;
  /** The prompt, where quotas are told nothing else of the size; undefined where `tokens` says more, or without one. */
  readonly inputTokens: number | undefined;
  readonly ttlMs: number | undefined;
  readonly sloTtftMs: number | undefined;
  signal: AbortSignal | undefined = undefined;

  /** Number of its source, and index of its traffic among that of the scenario. */
  readonly source: number;
  readonly traffic: number;
  readonly key: FlowKey;
  readonly promptTokens: number;
  readonly outputTokens: number;
  readonly serviceMs: number | undefined;
  readonly seats: number;
  readonly onEnd: OnEnd;
  readonly arrivedAtMs: number;

  /** Calls of `enqueue` so far. */
  attempts = 0;
  enqueuedAtMs: number = NaN;
  dispatchedAtMs: number = NaN;
  /** When a server began to work on it. */
  startedAtMs: number = NaN;
  firstTokenAtMs: number = NaN;
  tokensOut = 0;
  /** Of those, the ones that were counted as service. */
  tokensTold = 0;
  lease: Lease | undefined = undefined;
  controller: AbortController | undefined = undefined;
  /** Why its last attempt was dropped; empty otherwise. */
  dropReason = '';
  hasEnded = false;

  /** For the server that has it: its place there, and what it holds. The server alone writes them. */
  held = 0;
  left = 0;
  scheduled = 0;
  computed = 0;

  constructor(
    source: number,
    traffic: number,
    key: FlowKey,
    draft: RequestDraft,
    tokens: number,
    tellsPrompt: boolean,
    onEnd: OnEnd,
    arrivedAtMs: number,
  ) {
    this.byteSize = draft.byteSize;
    this.tokens = tokens;
    this.inputTokens = tellsPrompt && draft.promptTokens > 0 ? draft.promptTokens : undefined;
    this.ttlMs = draft.ttlMs;
    this.sloTtftMs = draft.sloTtftMs;
    this.source = source;
    this.traffic = traffic;
    this.key = key;
    this.promptTokens = draft.promptTokens;
    this.outputTokens = draft.outputTokens;
    this.serviceMs = draft.serviceMs;
    this.seats = draft.seats;
    this.onEnd = onEnd;
    this.arrivedAtMs = arrivedAtMs;
  }
}

/** One request of a run, kept where asked for. Instants in ms of simulated time; undefined where none came. */
export interface RequestRecord {
  readonly tenant: string;
  readonly priority: number;
  readonly promptTokens: number;
  /** Of its answer, as far as it was written. */
  readonly outputTokens: number;
  readonly arrivedAtMs: number;
  readonly dispatchedAtMs: number | undefined;
  readonly firstTokenAtMs: number | undefined;
  readonly endedAtMs: number | undefined;
  readonly attempts: number;
  /** `unfinished`: the run ended first. */
  readonly ending: Ending | 'unfinished';
  readonly dropReason: string | undefined;
}

export function recordOf(request: SimRequest, ending: Ending | 'unfinished', nowMs: number): RequestRecord {
  const known = (atMs: number): number | undefined => (Number.isNaN(atMs) ? undefined : atMs);
  return {
    tenant: request.key.fairnessId,
    priority: request.key.priority ?? 0,
    promptTokens: request.promptTokens,
    outputTokens: request.tokensOut,
    arrivedAtMs: request.arrivedAtMs,
    dispatchedAtMs: known(request.dispatchedAtMs),
    firstTokenAtMs: known(request.firstTokenAtMs),
    endedAtMs: ending === 'unfinished' ? undefined : nowMs,
    attempts: request.attempts,
    ending,
    dropReason: ending === 'dropped' ? request.dropReason : undefined,
  };
}
