/** `headgate/fetch`: a fetch whose requests wait for their turn, for clients of model APIs. Runs where fetch does. */
export type { AdapterGate, Classification, HttpFlowRequest, PlacementHints } from '../adapters/http/index.js';
export type { FetchCall } from './fetch-call.js';
export type {
  CallContext,
  ContextStorage,
  Fetch,
  FetchRetry,
  FetchTimeouts,
  FlowFetchOptions,
  MarkablePool,
} from './fetch-options.js';
export { elsewhere, type FetchCounts, type FetchRequest, type FlowFetch, flowFetch } from './flow-fetch.js';
