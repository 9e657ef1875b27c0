/** `headgate/ai`: flow control for the language models of the AI SDK. */
export type { AdapterGate, Classification, PlacementHints } from '../../adapters/http/index.js';
export type { CallContext, ContextStorage } from '../fetch-options.js';
export * from './flow-middleware.js';
export type { CallParams, GenerateResult, Model, StreamPart, StreamResult } from './language-model.js';
