/** `headgate/client`: a fetch that comes back as documented. Runs in browsers and on edge runtimes. */
export { type Backoff, dynamoBackoff, type FullJitterOptions, fullJitter } from './backoff.js';
export { type BatchDispatcher, type BatchDispatcherOptions, batchDispatcher } from './batch-dispatcher.js';
export type { FirstTokenTimeouts } from './first-token.js';
export { type RetryBudget, type RetryBudgetOptions, retryBudget } from './retry-budget.js';
export { type RefusedResponse, type RetryPolicy, retryDelayMs } from './retry-delay.js';
export { type RetryOptions, retrying, retryingFetch } from './retrying-fetch.js';
export type { Fetch } from './sent-again.js';
