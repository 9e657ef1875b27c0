/** What a call asks of the flow: the same for a fetch and for a model of the AI SDK. */
import type { AdapterGate, Classification, PlacementHints } from '../adapters/http/index.js';
import { type FlowRequest, type Outcome, tokenEstimator } from '../index.js';

const estimateTokens = tokenEstimator({ addEstimatedOutputTokens: true });

/** What every call tells of itself; `inputTokens`: of the prompt, as far as the call knows. */
export interface CallFacts extends Pick<FlowRequest, 'byteSize' | 'signal'> {
  readonly inputTokens?: number | undefined;
  readonly maxOutputTokens?: number | undefined;
}

/** Asks whenever called. Tokens are those that the host names, else those of `estimate`, else the call's. */
export function turnFor<R extends FlowRequest & PlacementHints>(
  flow: AdapterGate<R>,
  named: Classification,
  call: Omit<R, keyof Classification> & CallFacts,
  estimate: (() => number | undefined) | undefined,
): () => Promise<Outcome> {
  const { fairnessId, priority, tokens, ttlMs, maxWaitMs, sloTtftMs, affinityKey, sessionId, endpointSubset } = named;
  const { maxOutputTokens } = call;
  const inputTokens = tokens === undefined && estimate === undefined ? call.inputTokens : undefined;
  const booked =
    inputTokens === undefined ? (tokens ?? estimate?.()) : estimateTokens({ inputTokens, maxOutputTokens });
  const hints = { ttlMs, maxWaitMs, sloTtftMs, affinityKey, sessionId, endpointSubset };
  const request = { ...call, ...hints, inputTokens, tokens: booked } as unknown as R;
  const key = { fairnessId, priority };
  return async () => flow.enter?.(request, key) ?? flow.enqueue(request, key);
}
